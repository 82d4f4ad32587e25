// Declares just enough of BehaviorTree.ROS2 to compile the example of docs/reacting.md without it.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace BT
{
enum class NodeStatus { SUCCESS, FAILURE };
struct NodeConfig {};
struct RosNodeParams {};
using Port = std::pair<std::string, std::string>;
using PortsList = std::vector<Port>;

template<typename T>
Port OutputPort(const std::string & name, const std::string & description);

template<typename TopicT>
class RosTopicSubNode
{
public:
  RosTopicSubNode(const std::string & name, const NodeConfig & config, const RosNodeParams & params);
  virtual ~RosTopicSubNode() = default;
  static PortsList providedBasicPorts(PortsList addition);
  virtual NodeStatus onTick(const std::shared_ptr<TopicT> & last_msg) = 0;

protected:
  template<typename T>
  void setOutput(const std::string & key, const T & value);
};
}  // namespace BT

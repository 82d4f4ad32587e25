// Declares just enough of rclcpp to compile the examples of README and docs where ROS 2 comes from wheels, which
// carry the message headers but not rclcpp. Where ROS 2 is installed, the real one is used instead.
#pragma once
#include <functional>
#include <future>
#include <memory>
#include <string>

namespace rclcpp
{
struct Logger {};

template<typename MessageT>
struct Subscription
{
  using SharedPtr = std::shared_ptr<Subscription<MessageT>>;
};

template<typename ServiceT>
struct Client
{
  using SharedPtr = std::shared_ptr<Client<ServiceT>>;
  using SharedFuture = std::shared_future<std::shared_ptr<typename ServiceT::Response>>;
  bool service_is_ready() const;
  void async_send_request(
    std::shared_ptr<typename ServiceT::Request> request, std::function<void(SharedFuture)> callback);
};

class Node
{
public:
  explicit Node(const std::string & name);
  Logger get_logger() const;
  template<typename ServiceT>
  typename Client<ServiceT>::SharedPtr create_client(const std::string & name);
  template<typename MessageT>
  typename Subscription<MessageT>::SharedPtr create_subscription(
    const std::string & topic, size_t depth, std::function<void(const MessageT &)> callback);
};

void init(int argc, char ** argv);
void spin(std::shared_ptr<Node> node);
void shutdown();
}  // namespace rclcpp

void warn(const rclcpp::Logger & logger, const char * format, ...) __attribute__((format(printf, 2, 3)));
#define RCLCPP_WARN(...) warn(__VA_ARGS__)

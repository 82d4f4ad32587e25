// Makes the class in place, as the macro of BehaviorTree.ROS2 does: a pure virtual function left over shows.
#pragma once
#define CreateRosNodePlugin(TYPE, NAME) \
  inline TYPE * make_plugin() {return new TYPE(NAME, BT::NodeConfig(), BT::RosNodeParams());}

"""The ROS 2 side: the one folder that imports rclpy."""

"""Recordings of a camera: frames in. Nothing here needs ROS."""

"""What scoring recordings gives: rows in memory, and a folder on disk. Nothing here needs ROS or a model."""

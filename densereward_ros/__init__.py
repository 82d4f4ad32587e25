"""densereward_ros: dense rewards and failure events from a robot's cameras, several times a second."""

__version__ = '0.1.0'

"""Scoring recordings: what `densereward score` does, on one machine or on many. Nothing here needs ROS."""

# Source this in bash to use the package: the virtual environment, ROS 2 and, once built, the package itself.

_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export VIRTUAL_ENV=$_root/.venv
export PATH=$VIRTUAL_ENV/bin:$PATH
if [ "${ROS_VERSION:-}" != 2 ]; then
  # No ROS 2 is sourced, so it lies in the virtual environment.
  export AMENT_PREFIX_PATH=$VIRTUAL_ENV CMAKE_PREFIX_PATH=$VIRTUAL_ENV
  # Set by another environment's Python, it would keep ours from finding its libraries.
  unset _ROS_WHEELS_BOOTSTRAP_COMPLETE
fi
if [ -f "$_root/install/densereward_ros/share/densereward_ros/local_setup.bash" ]; then
  . "$_root/install/local_setup.bash"
fi
unset _root

"""Images and time: bytes become RGB pictures, pictures become windows."""

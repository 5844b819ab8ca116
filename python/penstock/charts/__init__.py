"""Line charts, as PNG pictures and HTML pages."""

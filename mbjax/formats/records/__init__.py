"""Records of robots, between files on one side and plants and models on the other."""

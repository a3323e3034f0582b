"""Speed claims, as ratios to a peer or to the hardware in the same run: `make bench`."""

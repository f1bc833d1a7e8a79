"""The synthetic sample: the stories that its transfers tell, and what makes its shipped tables of them."""

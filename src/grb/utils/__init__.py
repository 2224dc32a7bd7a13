"""Import paths of the papers' era; nothing inside grb imports them."""

"""How people and programs reach a gate from outside its process."""

from grb.attack.modification.fga import FGA as FGA

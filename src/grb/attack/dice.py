from grb.attack.modification.dice import DICE as DICE

from grb.attack.modification.stack import STACK as STACK

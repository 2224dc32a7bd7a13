from grb.attack.modification.random import RAND as RAND

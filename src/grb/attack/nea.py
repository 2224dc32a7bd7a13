from grb.attack.modification.nea import NEA as NEA

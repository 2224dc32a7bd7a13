from grb.attack.injection.pgd import PGD as PGD

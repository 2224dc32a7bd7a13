from grb.attack.injection.speit import SPEIT as SPEIT

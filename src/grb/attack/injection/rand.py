from grb.attack.injection.random import RAND as RAND

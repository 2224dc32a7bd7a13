from grb.attack.injection.tdgia import TDGIA as TDGIA

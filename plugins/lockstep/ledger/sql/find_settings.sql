SELECT (SELECT spec FROM lockstep.deployed_setting WHERE pipeline = %(pipeline)s AND sink = %(sink)s) AS deployed,
       (SELECT settings FROM lockstep.setting_override WHERE pipeline = %(pipeline)s AND sink = %(sink)s
        ORDER BY id DESC LIMIT 1) AS override

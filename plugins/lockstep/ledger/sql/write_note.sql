-- Something worth keeping that moves no state: a repair, a discarded seal, a person's word.
SELECT lockstep.write_transition(%(pipeline)s, %(epoch)s, %(sink)s, %(state)s, %(state)s, %(attempt)s, %(token)s)

INSERT INTO lockstep.participant (pipeline, epoch, sink, state) VALUES (%(pipeline)s, %(epoch)s, %(sink)s, 'pending')

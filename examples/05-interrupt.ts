// An interrupt is polite: the call completes with a reply, and the session can go on. Unsubscribing is not.
import { createAgent, only, textOf, tool } from 'millrace';
import { sessions } from 'millrace/sessions';
import { demoModel } from '@millrace/demo-model';
import { NEVER, take } from 'rxjs';

const slow = tool({
  name: 'backup',
  description: 'Makes a backup of the disk.',
  run: (_input, { signal }) => {
    signal.addEventListener('abort', () => console.log('backup: aborted'));
    return NEVER;
  },
});

const session = sessions(createAgent({ model: demoModel(), tools: [slow] })).open('admin');

session.events$.pipe(only('preActing'), take(1)).subscribe(() => {
  queueMicrotask(() => console.log('interrupted:', session.interrupt('Fine, no backup today.')));
});
const reply = await session.call('Make a backup of the disk.');
console.log(reply.reason, '-', textOf(reply));
console.log(reply.toolCalls.map(({ name, output }) => `${name}: ${output}`));

const running = session.call$('Make a backup of the disk again.').subscribe();
running.unsubscribe();
console.log('interrupted:', session.interrupt(), '(nothing runs)');

import { createAgent, tool } from '@millrace/core';
import { journal } from '@millrace/core/journal';
import { keepSessions, sessions } from '@millrace/core/sessions';
import { scriptedModel, text, toolCall } from '@millrace/core/testing';
import { concat, defer, ignoreElements, NEVER, of, timer } from 'rxjs';
import { openFiles } from './open-files.js';

/** Begins two conversations in a directory of files, and kills the process in the tool of the last call. */
export const writeSampleFiles = async (directory: string): Promise<void> => {
  const store = openFiles(directory);
  const killed$ = defer(() => of(process.kill(process.pid, 'SIGKILL')));
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    run: () => concat(timer(50), killed$, NEVER).pipe(ignoreElements()),
  });
  const model = scriptedModel(
    [text('Hello.')],
    [text('Hello again.')],
    [toolCall('pay', {}, 'u1')],
  );
  const durable = journal(store.calls);
  const agent = createAgent({ name: 'sample', model, tools: [pay], use: [durable] });
  const chat = sessions(agent, { memory: store.memory }).open('chat');
  await chat.call('Hi.', { callId: 'a' });
  const kept = await keepSessions(agent, store.sessions, { journal: durable }).open('kept/ü');
  await kept.call('Hi.', { callId: 'b' });
  await kept.call('Pay.', { callId: 'c/1' });
};

// Two workers share the calls of an agent. The one with the call is killed, and the other continues it. Needs PostgreSQL on this machine.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createAgent, type Model, only, textOf, tool } from 'millrace';
import { finish, text, toolCall } from 'millrace/testing';
import { openDbos } from '@millrace/dbos';
import { startPostgres } from '@millrace/postgres-server';
import { delay, firstValueFrom, lastValueFrom, of } from 'rxjs';

const { WORKER_OF: database } = process.env;
if (database === undefined) await main();
else {
  const run = () => of('One sack is ground.').pipe(delay(300));
  const grind = tool({ name: 'grind', description: 'Grinds.', idempotent: true, run });
  const stream$: Model['stream$'] = ({ messages }) => {
    const sacks = messages.filter(({ role }) => role === 'tool').length;
    return of(sacks < 3 ? toolCall('grind') : text(`${sacks} sacks are ground.`), finish());
  };
  const miller = createAgent({ name: 'miller', model: { name: 'demo', stream$ }, tools: [grind] });
  const notices$ = openDbos(database).work$([miller], { recoverMs: 500 });
  notices$.subscribe(({ type }) => type === 'started' && process.send?.(type));
}

async function main(): Promise<void> {
  const server = await startPostgres();
  const env = { ...process.env, WORKER_OF: server.url };
  const workers = [fork(import.meta.filename, { env }), fork(import.meta.filename, { env })];
  const engine = openDbos(server.url);
  const callId = await firstValueFrom(engine.start$('miller', 'Grind three sacks.'));
  const busy = await Promise.race(workers.map((it) => once(it, 'message').then(() => it)));
  await firstValueFrom(engine.attach$(callId).pipe(only('postActing')));
  busy.kill('SIGKILL');
  console.log('The worker is killed.');
  console.log(textOf(await firstValueFrom(engine.reply$(callId))));
  workers.forEach((worker) => worker.kill('SIGKILL'));
  await lastValueFrom(engine.close$(), { defaultValue: undefined });
  await server.stop();
}

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { AgentEvent } from 'millrace';
import pg from 'pg';
import { filter, firstValueFrom, lastValueFrom, ReplaySubject, toArray } from 'rxjs';
import { done, type Engines, over, replyText, startEngines, until } from './engine.test-support.js';
import type { WorkNotice } from './worked-agents.js';

let engines: Engines;
let admin: pg.Client;
const processes: ChildProcess[] = [];
beforeAll(async () => {
  engines = await startEngines();
  admin = new pg.Client(engines.server.url);
  await admin.connect();
});
afterEach(async () => {
  await Promise.all(processes.splice(0).map((worker) => ended(worker, 'SIGKILL')));
  await engines.close();
});
afterAll(async () => {
  await admin.end();
  await engines.stop();
});

interface WorkerProcess {
  readonly process: ChildProcess;
  /** Waits for a notice. */
  told(type: WorkNotice['type'], callId?: string): Promise<WorkNotice>;
}

const program = fileURLToPath(new URL('../dist/worker-process.test-support.js', import.meta.url));

const startWorker = async (version = '', says = ''): Promise<WorkerProcess> => {
  const child = spawn(process.execPath, [program, engines.server.url, version, says], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  processes.push(child);
  const notices$ = new ReplaySubject<WorkNotice>(Infinity);
  createInterface(child.stdout).on('line', (line) => notices$.next(JSON.parse(line)));
  const told: WorkerProcess['told'] = (type, callId) =>
    firstValueFrom(
      notices$.pipe(
        filter(
          (it) =>
            it.type === type &&
            (callId === undefined || JSON.stringify(it).includes(`"${callId}"`)),
        ),
      ),
    );
  await told('ready');
  return { process: child, told };
};

const ended = async (worker: ChildProcess, signal: NodeJS.Signals): Promise<void> => {
  if (worker.exitCode !== null || worker.signalCode !== null) return;
  const exit = once(worker, 'exit');
  worker.kill(signal);
  await exit;
};

describe('workers', () => {
  it('continue a call that was begun on one, followed from a second process, and interrupted from a third, after two were killed', async () => {
    const [first, second] = await Promise.all([startWorker(), startWorker()]);
    const starting = engines.open();
    await firstValueFrom(
      starting.start$('clerk', 'forever', { callId: 'four', sessionId: 'four' }),
    );
    const following = engines.open();
    const seen = lastValueFrom(following.attach$('four').pipe(toArray()));
    await until(following, 'four', 'postActing');
    await ended(first.process, 'SIGKILL');
    await ended(second.process, 'SIGKILL');
    const interrupting = engines.open();
    await done(interrupting.interrupt$('four', 'Enough.'));
    const third = await startWorker();
    await third.told('recovered', 'four');
    expect(await replyText(following, 'four')).toBe('Enough.');
    const events = await seen;
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    expect(events.filter(({ type }) => type === 'stepReplayed').length).toBeGreaterThan(2);
    expect(events.at(-1)).toMatchObject({ type: 'postCall', reply: { reason: 'interrupted' } });
  });

  it('waits for an approval across a deploy, and continues with the new agent', async () => {
    const old = await startWorker('', 'old');
    const engine = engines.open();
    await firstValueFrom(
      engine.start$('clerk', 'use pay', { callId: 'deploy', sessionId: 'deploy' }),
    );
    const asked = await until(engine, 'deploy', 'approvalRequested');
    // A deploy: the wait is cut, not drained, as it may take days.
    await ended(old.process, 'SIGKILL');
    expect(await firstValueFrom(engine.find$('deploy'))).toMatchObject({ status: 'running' });
    const renewed = await startWorker('', 'new');
    await renewed.told('started', 'deploy');
    await done(engine.decide$(asked, true));
    expect(await replyText(engine, 'deploy')).toBe('new: use pay | paid');
  });

  it('takes the messages that came while no worker had the call, before its next request', async () => {
    const first = await startWorker();
    const engine = engines.open();
    await firstValueFrom(
      engine.start$('clerk', 'use pay', { callId: 'alone', sessionId: 'alone' }),
    );
    const asked = await until(engine, 'alone', 'approvalRequested');
    await ended(first.process, 'SIGKILL');
    await done(engine.steer$('alone', 'by cheque'));
    await done(engine.decide$(asked, true));
    await startWorker();
    expect(await replyText(engine, 'alone')).toBe('use pay | by cheque | paid');
  });

  it('keeps a call on the version that began it, until it is adopted', async () => {
    const old = await startWorker('v1', 'old');
    const engine = engines.open({ version: 'v1' });
    for (const callId of ['stays', 'moves']) {
      await firstValueFrom(engine.start$('clerk', 'use pay', { callId, sessionId: callId }));
    }
    const stays = await until(engine, 'stays', 'approvalRequested');
    const moves = await until(engine, 'moves', 'approvalRequested');
    const renewed = await startWorker('v2', 'new');
    const later = engines.open({ version: 'v2' });
    await firstValueFrom(later.start$('clerk', 'hello', { callId: 'later' }));
    expect(await replyText(later, 'later')).toBe('new: hello');
    // The old version still answers its calls.
    await done(engine.decide$(stays, true));
    expect(await replyText(engine, 'stays')).toBe('old: use pay | paid');
    await over(engine, 'stays');
    expect(await firstValueFrom(later.adopt$('v1'))).toEqual([]);
    await ended(old.process, 'SIGKILL');
    expect(await firstValueFrom(later.find$('moves'))).toMatchObject({
      version: 'v1',
      status: 'running',
    });
    expect(await firstValueFrom(later.adopt$('v1'))).toEqual(['moves']);
    await renewed.told('started', 'moves');
    await done(later.decide$(moves, true));
    expect(await replyText(later, 'moves')).toBe('new: use pay | paid');
  });

  it('hands its calls over when it is asked to end', async () => {
    const first = await startWorker();
    const engine = engines.open();
    await firstValueFrom(
      engine.start$('clerk', 'forever', { callId: 'handed', sessionId: 'handed' }),
    );
    await until(engine, 'handed', 'postActing');
    const second = await startWorker();
    await ended(first.process, 'SIGTERM');
    await second.told('started', 'handed');
    await done(engine.steer$('handed', 'stop'));
    const seen = await lastValueFrom(engine.attach$('handed').pipe(toArray()));
    // Its last step had its end.
    expect(seen.filter(({ type }) => type === 'uncertain')).toEqual([]);
    expect(seen.at(-1)).toMatchObject({ type: 'postCall', reply: { reason: 'answer' } });
    // Only workers that died count.
    const { rows } = await admin.query(
      `select recovery_attempts as count from dbos.workflow_status where workflow_uuid = 'handed'`,
    );
    expect(rows).toEqual([{ count: '1' }]);
  });

  it('continues when the database has closed its connections', async () => {
    const worker = await startWorker();
    const engine = engines.open();
    await firstValueFrom(engine.start$('clerk', 'forever', { callId: 'cut', sessionId: 'cut' }));
    await until(engine, 'cut', 'postActing');
    await admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname is not null`,
    );
    await worker.told('warning');
    await done(engine.steer$('cut', 'stop'));
    const seen: readonly AgentEvent[] = await lastValueFrom(engine.attach$('cut').pipe(toArray()));
    expect(seen.at(-1)).toMatchObject({ type: 'postCall', reply: { reason: 'answer' } });
    expect(seen.filter(({ type }) => type === 'postCall')).toHaveLength(1);
  });

  it('gives up a call that has killed too many workers', async () => {
    const engine = engines.open();
    const worker = await startWorker();
    await firstValueFrom(engine.start$('clerk', 'forever', { callId: 'poison' }));
    await until(engine, 'poison', 'postActing');
    await admin.query(
      `update dbos.workflow_status set recovery_attempts = 60 where workflow_uuid = 'poison'`,
    );
    await ended(worker.process, 'SIGKILL');
    await startWorker();
    await expect(firstValueFrom(engine.reply$('poison'))).rejects.toMatchObject({
      code: 'aborted',
      message: expect.stringContaining("resume$('poison')"),
    });
    expect(await firstValueFrom(engine.find$('poison'))).toMatchObject({ status: 'abandoned' });
    await over(engine, 'poison');
  });
});

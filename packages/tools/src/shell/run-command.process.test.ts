import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, readdir, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createAgent, createDemand, type ToolEmission } from 'millrace';
import { lentToolContext, scriptedModel, text, toolCall } from 'millrace/testing';
import {
  firstValueFrom,
  lastValueFrom,
  ReplaySubject,
  Subject,
  take,
  VirtualTimeScheduler,
} from 'rxjs';
import { runTool } from '../run-tool.test-support.js';
import { runCommand, type RunCommandOptions } from './run-command.js';

const node = process.execPath;
let directory: string;
beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), 'run-command-')));
});
afterEach(() => rm(directory, { recursive: true }));

const create = (options: Partial<RunCommandOptions> = {}) =>
  runCommand({ commands: [node], approve: true, directory, ...options });
const script = (code: string, ...args: string[]) => ({
  command: node,
  args: ['-e', code, ...args],
});
const run = (code: string, options?: Partial<RunCommandOptions>) =>
  runTool(create(options), script(code));

describe('run_command', () => {
  it('streams the output, and returns it with the exit code', async () => {
    const ran = await run('console.log("out"); console.error("err"); process.exitCode = 3');
    expect(ran.progress.join('').split('\n').sort()).toEqual(['', 'err', 'out']);
    expect(ran.text).toMatch(/out[^]*\n\n\[Exit code 3.\]$/u);
    expect(ran.output).toMatchObject({ isError: false, details: { code: 3, signal: null } });
    expect((await run('')).text).toBe('(no output)\n\n[Exit code 0.]');
    expect((await run('process.kill(process.pid)')).text).toContain('[Terminated by SIGTERM.]');
  });

  it('I16: leaves the output in the pipe while demand is closed', async () => {
    const demand = createDemand(1);
    demand.backlog(1);
    const emissions$ = new ReplaySubject<ToolEmission>(1);
    const code =
      'const fs = require("fs"); fs.writeSync(1, "out"); fs.writeFileSync("written", ""); setInterval(() => {}, 1e6)';
    const subscription = create()
      .run$(script(code), lentToolContext({ demand }))
      .subscribe(emissions$);
    let count = 0;
    emissions$.subscribe(() => (count += 1));
    while (!existsSync(join(directory, 'written'))) await new Promise(setImmediate);
    for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate);
    expect(count).toBe(0);
    demand.backlog(0);
    expect(await firstValueFrom(emissions$)).toEqual({ type: 'progress', value: 'out' });
    subscription.unsubscribe();
  });

  it('runs in its directory, without input', async () => {
    const code = 'process.stdin.on("end", () => console.log(process.cwd())).resume()';
    expect((await run(code)).text).toBe(`${directory}\n\n[Exit code 0.]`);
  });

  it.each([
    '; touch x',
    '$(touch x)',
    '`touch x`',
    '&& touch x',
    '| touch x',
    '> x',
    '$PATH',
    '*',
    "'",
    '\n touch x',
  ])('passes %j as it is: there is no shell', async (argument) => {
    const echo = script('process.stdout.write(process.argv[1])', argument);
    const { progress } = await runTool(create(), echo);
    expect(progress.join('')).toBe(argument);
    expect(await readdir(directory)).toEqual([]);
  });

  it.each([
    { command: 'sh' },
    { command: `${node} -e 1` },
    { command: './node' },
    { command: '' },
    { command: 'constructor' },
    { command: node, args: 'x' },
    { command: node, args: Array.from({ length: 201 }, () => '') },
  ])('refuses the input %j', async (input) => {
    await expect(runTool(create(), input)).rejects.toThrow(/command|args/u);
  });

  it('passes only the listed variables of the environment', async () => {
    process.env['MILLRACE_TEST_SECRET'] = 'TOP SECRET';
    const names = 'console.log(Object.keys(process.env).join())';
    const [none, some] = [
      await run(names),
      await run(names, { environment: ['MILLRACE_TEST_SECRET', 'NOT_SET'] }),
    ];
    delete process.env['MILLRACE_TEST_SECRET'];
    expect(none.text).toContain('PATH');
    expect(none.text).not.toContain('SECRET');
    expect(some.text).toBe('MILLRACE_TEST_SECRET\n\n[Exit code 0.]');
  });

  it('keeps the beginning and the end of long output', async () => {
    const code = 'process.stdout.write("<" + "x".repeat(5_000_000) + ">")';
    const ran = await run(code, { maxLength: 1_000 });
    expect(ran.text).toMatch(/^<x{499}\n\[… 4999002 characters …\]\nx{499}>\n\n\[Exit code 0.\]$/u);
  });

  it('explains that a program cannot be started', async () => {
    const tool = create({ commands: ['no-such-program'] });
    await expect(runTool(tool, { command: 'no-such-program' })).rejects.toThrow(
      "The program 'no-such-program' cannot be started.",
    );
    await expect(runTool(create(), { command: node, args: ['\0'] })).rejects.toThrow();
  });

  it.each([
    [{}, "runCommand() needs 'commands'"],
    [{ commands: [] }, "'commands' must be a list of one or more programs"],
    [{ commands: ['ls'] }, "runCommand() needs 'approve': an approver function, or true"],
    [{ commands: ['ls'], approve: 'yes' }, "'approve' must be an approver function, or true"],
  ])('refuses the options %j', (options, message) => {
    expect(() => runCommand(options as never)).toThrow(message);
  });

  it('T12: runs only what is approved', async () => {
    const asked: unknown[] = [];
    const approve: RunCommandOptions['approve'] = ({ input }) => {
      asked.push(input);
      return { approved: false, reason: 'Too loud.' };
    };
    const input = script('require("fs").writeFileSync("x", "")');
    const model = scriptedModel([toolCall('run_command', input)], [text('done')]);
    const { toolCalls } = await createAgent({ model, tools: [create({ approve })] }).call('x');
    expect(toolCalls[0]?.output).toContain('Too loud.');
    expect(asked).toEqual([input]);
    expect(await readdir(directory)).toEqual([]);
  });
});

describe('I5: run_command ends all that it has started', () => {
  // Prints the id of a process in the background that keeps the output open.
  const family = (end: string) =>
    script(
      `const { pid } = require("child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1e6)"], { stdio: "inherit" });
     process.stdout.write(String(pid)); ${end}`,
    );
  /** Resolves once there is no such process. */
  const ended = async (pid: number): Promise<void> => {
    for (;;) {
      try {
        process.kill(pid, 0);
        // Its new parent may never ask for its exit code.
        if (readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')) return;
      } catch {
        return;
      }
      await new Promise(setImmediate);
    }
  };
  const start = (scheduler: VirtualTimeScheduler) => {
    const emissions$ = new Subject<ToolEmission>();
    const first = lastValueFrom(emissions$.pipe(take(1)));
    const subscription = create()
      .run$(family('setInterval(() => {}, 1e6)'), lentToolContext({ scheduler }))
      .subscribe(emissions$);
    const pid = first.then((emission) => Number(emission.type === 'progress' && emission.value));
    return { emissions$, pid, subscription };
  };

  it('when the program exits', async () => {
    const { text: printed } = await runTool(create(), family('process.exit()'));
    await ended(Number.parseInt(printed, 10));
  });

  it('but not what has left its group, which loses the output', async () => {
    const leaving = script(
      `const { pid } = require("child_process").spawn(process.execPath, ["-e", "process.stdout.on('error', () => process.exit()); setTimeout(() => process.exit(), 30000); setInterval(() => process.stdout.write('flood '), 5)"], { detached: true, stdio: "inherit" });
     process.stdout.write("<" + pid + ">"); setTimeout(() => process.exit(), 300);`,
    );
    const pipes = (): number =>
      process.getActiveResourcesInfo().filter((it) => it === 'PipeWrap').length;
    const before = pipes();
    const { text: printed } = await runTool(create(), leaving);
    expect(printed).toMatch(/<\d+>[^]*\[Exit code 0.\]$/u);
    await new Promise(setImmediate);
    expect(pipes()).toBe(before);
    // Its output has no reader any more.
    await ended(Number(/<(\d+)>/u.exec(printed)?.[1]));
  });

  it('when the caller unsubscribes', async () => {
    const { pid, subscription } = start(new VirtualTimeScheduler());
    const id = await pid;
    subscription.unsubscribe();
    await ended(id);
  });

  it('when time is up', async () => {
    const scheduler = new VirtualTimeScheduler();
    const { emissions$, pid } = start(scheduler);
    const failed = expect(lastValueFrom(emissions$)).rejects.toThrow('stopped after 30000 ms');
    const id = await pid;
    scheduler.flush();
    await failed;
    await ended(id);
  });
});

import { AsyncLocalStorage } from 'node:async_hooks';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import {
  addTools,
  createAgent,
  interruptOn,
  type Layer,
  requireApproval,
  selectTools,
  type Tool,
  tool,
} from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { delayWhen, filter, firstValueFrom, interval, map, of, Subject, take } from 'rxjs';
import { mcp, type McpLayer, mcpTools, type ToolChange } from './index.js';
import { calm, hostile, ran } from './servers.test-support.js';

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

const ended = (pid: number): Promise<unknown> =>
  firstValueFrom(interval(5).pipe(filter(() => !isAlive(pid))));

const pidOf = async (servers: Layer): Promise<number> =>
  Number((await ran([servers], [['bad_use']])).results['bad_use']);

/** The tools of the first server, once they are as described. */
const listed = (servers: McpLayer, ...names: readonly string[]): Promise<readonly string[]> =>
  firstValueFrom(
    servers.servers$.pipe(
      map(([server]) => server?.tools.map(({ name }) => name) ?? []),
      filter((all) => names.every((name) => all.includes(name))),
    ),
  );

const warned = (servers: McpLayer): Promise<readonly string[]> =>
  firstValueFrom(
    servers.servers$.pipe(
      map((all) => all.flatMap(({ warnings }) => warnings)),
      filter((warnings) => warnings.length > 0),
    ),
  );

describe('T20: the connection', () => {
  it('is shared by calls that run at the same time, and ended with the last', async () => {
    const servers = mcp(hostile('process'));
    const [one, two] = await Promise.all([pidOf(servers), pidOf(servers)]);
    expect(one).toBe(two);
    await ended(one);
    expect(await pidOf(servers)).not.toBe(one);
  });

  it('takes many long messages while the server reads none, without a warning', async () => {
    const bundle = join(import.meta.dirname, '../dist/bundle/client.js');
    const server = `const lines = require('node:readline').createInterface({ input: process.stdin });
      const results = {
        initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } },
        'tools/list': { tools: [{ name: 'use', inputSchema: { type: 'object' } }] },
        'tools/call': { content: [] },
      };
      lines.on('line', (line) => {
        const { id, method } = JSON.parse(line);
        if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] }));
        if (method !== 'tools/list') return;
        process.stdin.pause();
        setTimeout(() => process.stdin.resume(), 500);
      });`;
    const program = `import { createAgent } from 'millrace';
      import { scriptedModel, text, toolCall } from 'millrace/testing';
      import { mcp } from ${JSON.stringify(bundle)};
      const word = 'x'.repeat(200_000);
      const calls = Array.from({ length: 20 }, () => toolCall('calm_use', { word }));
      const use = [mcp({ name: 'calm', stdio: { command: process.execPath, args: ['-e', ${JSON.stringify(server)}] } })];
      const { toolCalls } = await createAgent({ model: scriptedModel(calls, [text('done')]), use }).call('?');
      console.log(toolCalls.filter(({ isError }) => isError === false).length);`;
    const { stdout, stderr } = await promisify(execFile)(
      process.execPath,
      ['--input-type=module', '-e', program],
      { cwd: import.meta.dirname, timeout: 20_000 },
    );
    expect([stdout, stderr]).toEqual(['20\n', '']);
  });

  it('stays between calls while servers$ has a subscriber', async () => {
    const servers = mcp(hostile('process'));
    const held = servers.servers$.subscribe();
    const first = await pidOf(servers);
    expect(await pidOf(servers)).toBe(first);
    held.unsubscribe();
    await ended(first);
  });

  it('I5: is ended with a call that is unsubscribed from', async () => {
    const servers = mcp(hostile('process'));
    const model = scriptedModel([toolCall('bad_use')], [text('done')]);
    const event = await firstValueFrom(
      createAgent({ model, use: [servers] })
        .stream$('?')
        .pipe(filter(({ type }) => type === 'postActing')),
    );
    await ended(
      Number(/\d{2,}/.exec(JSON.stringify('result' in event && event.result.content))?.[0]),
    );
  });

  it('S1: is not waited for after an interrupt', async () => {
    const stop$ = new Subject<void>();
    const agent = createAgent({ model: scriptedModel(), use: [mcp(hostile('silent start'))] });
    const reply = agent.call('?', { use: [interruptOn(stop$)] });
    stop$.next();
    expect((await reply).reason).toBe('interrupted');
  });

  it('T8: cancels a tool call that takes too long', async () => {
    const { results } = await ran(
      [mcp(hostile('silent call', { timeouts: { toolMs: 200 } }))],
      [['bad_use']],
      [['bad_count']],
    );
    expect(results['bad_count']).toBe('0 waiting, 1 cancelled');
  });
});

describe('T20: the tools of servers', () => {
  it('are added to those of the agent, whose names win', async () => {
    const model = scriptedModel([toolCall('calm_use')], [text('done')]);
    const own = tool({ name: 'calm_use', description: 'Is mine.', run: () => 'mine' });
    const warnings: string[] = [];
    const agent = createAgent({ model, tools: [own], use: [mcp(calm(), calm({ name: 'other' }))] });
    const reply = firstValueFrom(agent.events$.pipe(filter(({ type }) => type === 'postCall')));
    agent.events$.subscribe((event) => {
      if (event.type === 'warning') warnings.push(event.message);
    });
    const { toolCalls } = await agent.call('?');
    await reply;
    expect(toolCalls[0]?.output).toBe('mine');
    expect(model.requests[0]?.tools?.map(({ name }) => name)).toEqual(['calm_use', 'other_use']);
    expect(warnings).toEqual([
      "The MCP tool 'calm_use' is left out: the name is taken. Set another 'prefix'.",
    ]);
  });

  it('are chosen by include and exclude, and named by prefix', async () => {
    const include = { include: ['use', 'count'], exclude: ['count'], prefix: '' };
    expect((await ran([mcp(hostile('silent call', include))])).tools).toEqual([['use']]);
  });

  it('T11: may be hidden by a selection', async () => {
    const layers = [
      mcp(calm()),
      mcp(calm({ name: 'other' })),
      selectTools({ select: () => ['other_use'] }),
    ];
    expect((await ran(layers)).tools).toEqual([['other_use']]);
  });

  it('T12: can be wrapped, to ask for approval', async () => {
    const wrap = (it: Tool) => requireApproval(it, false);
    const { results } = await ran([mcp(calm({ wrap }))], [['calm_use']]);
    expect(results['calm_use']).toMatch(/denied|not approved/i);
  });

  it('are those of the latest list', async () => {
    const servers = mcp(hostile('renamed'));
    const held = servers.servers$.subscribe();
    expect((await ran([servers], [['bad_use']])).tools[0]).toEqual(['bad_use', 'bad_name1']);
    expect(await listed(servers, 'bad_name2')).toEqual(['bad_use', 'bad_name2']);
    held.unsubscribe();
  });

  it('keep their names: no server gets the calls of another one by listing its tool', async () => {
    const servers = mcp(
      hostile('renamed', { prefix: 'x_' }),
      hostile('renamed', { name: 'other', prefix: 'x_' }),
    );
    const held = servers.servers$.subscribe();
    expect((await ran([servers], [['x_use']])).tools[0]).toEqual(['x_use', 'x_name1']);
    expect(await listed(servers, 'x_name2')).toEqual(['x_use', 'x_name2']);
    expect((await ran([servers])).tools).toEqual([['x_use', 'x_name2']]);
    held.unsubscribe();
  });

  it('are listed once for many announced changes', async () => {
    const servers = mcp(hostile('announces changes'));
    const held = servers.servers$.subscribe();
    await ran([servers], [['bad_use']]);
    expect(await listed(servers, 'bad_list2')).toEqual(['bad_use', 'bad_list2']);
    held.unsubscribe();
  });
});

describe('T20: a tool whose description changes', () => {
  it('is not used, and reported', async () => {
    const servers = mcp(hostile('redescribed'));
    const held = servers.servers$.subscribe();
    expect((await ran([servers], [['bad_use']])).tools[0]).toEqual(['bad_use', 'bad_prey']);
    const [warning] = await warned(servers);
    expect(warning).toMatch(
      /'prey' of the MCP server 'bad' is left out: its description or schema changed/,
    );
    const { tools, warnings } = await ran([servers]);
    expect(tools).toEqual([['bad_use']]);
    expect(warnings).toEqual([warning]);
    held.unsubscribe();
  });

  it('is used after it was accepted, also if that takes a while', async () => {
    const changes: ToolChange[] = [];
    const accepted$ = new Subject<boolean>();
    const onChanged = (change: ToolChange) => {
      changes.push(change);
      return accepted$;
    };
    const servers = mcp(hostile('redescribed', { onChanged }));
    const held = servers.servers$.subscribe();
    await ran([servers], [['bad_use']]);
    await warned(servers);
    expect(changes).toMatchObject([
      {
        server: 'bad',
        tool: 'prey',
        before: { description: 'Is version 0.' },
        after: { description: 'Is version 1.' },
      },
    ]);
    accepted$.next(true);
    expect((await ran([servers])).descriptions).toMatchObject({ bad_prey: 'Is version 1.' });
    held.unsubscribe();
  });
});

describe('T20: questions of a server', () => {
  it.each(['elicit', 'sample'])('are refused by default: %s', async (name) => {
    const { results } = await ran([mcp(hostile('asks'))], [[`bad_${name}`]]);
    expect(results[`bad_${name}`]).toContain('-32601');
  });

  it('are answered by the callbacks', async () => {
    const { results } = await ran(
      [
        mcp(
          hostile('asks', {
            onElicit: ({ message }) =>
              of({ action: 'accept', content: { name: `Ada, ${message}` } }),
            onSample: ({ maxTokens }) =>
              of({
                model: 'mine',
                role: 'assistant',
                content: { type: 'text', text: `${maxTokens} tokens` },
              }),
          }),
        ),
      ],
      [['bad_elicit'], ['bad_sample']],
    );
    expect(results['bad_elicit']).toContain('Ada, Your name?');
    expect(results['bad_elicit']).toContain('"mood":"calm"');
    expect(results['bad_sample']).toContain('9 tokens');
  });

  it('I21: are asked in the async context of their request, and of no one if several are open', async () => {
    const user = new AsyncLocalStorage<string>();
    const asked: unknown[] = [];
    const both$ = new Subject<void>();
    const bothAsk = { isAwaited: false };
    const servers = mcp(
      hostile('asks', {
        onElicit: () => {
          asked.push(user.getStore());
          if (asked.length === 3) both$.next();
          return of({ action: 'accept', content: { name: 'x' } } as const).pipe(
            delayWhen(() => (bothAsk.isAwaited && asked.length < 3 ? both$ : of(0))),
          );
        },
      }),
    );
    const ask = (who: string) => user.run(who, () => ran([servers], [['bad_elicit']]));
    // Ann has opened the connection that all share.
    const held = user.run('ann', () => servers.servers$.subscribe());
    await user.run('ann', () => listed(servers, 'bad_elicit'));
    await ask('ben');
    expect(asked).toEqual(['ben']);
    bothAsk.isAwaited = true;
    await Promise.all([ask('cyd'), ask('dan')]);
    held.unsubscribe();
    // The first of the two is the only one that is open, or is not.
    expect(asked.slice(1)).not.toContain('ann');
    expect(asked.slice(1)).not.toContain('ben');
    expect(asked.at(-1)).toBeUndefined();
  });
});

describe('T20: mcpTools', () => {
  it('emits the tools of a server; addTools gives them to a call', async () => {
    const { results } = await ran([addTools(mcpTools(calm()))], [['calm_use']]);
    expect(results['calm_use']).toBe('use ran');
  });

  it('errors after the maximum number of consecutive failures', async () => {
    const reconnect = { attempts: 3, backoffMs: 1 };
    await expect(
      firstValueFrom(mcpTools(hostile('dies at start', { reconnect }))),
    ).rejects.toMatchObject({
      name: 'MillraceError',
      code: 'connection',
      message: "The MCP server 'bad' failed to connect: it closed the connection.",
    });
  });

  it('errors immediately if no retry can help', async () => {
    const stdio = { command: '/no/such/program' };
    await expect(firstValueFrom(mcpTools({ name: 'none', stdio }))).rejects.toMatchObject({
      code: 'config',
      message: expect.stringContaining("Check 'command', 'cwd' and that it is installed."),
    });
  });

  it('ends the child process when it is unsubscribed from', async () => {
    const tools$ = mcpTools(hostile('process'));
    const pid = new Subject<number>();
    const gone = firstValueFrom(pid);
    const subscription = addTools(tools$);
    pid.next(await pidOf(subscription));
    await ended(await gone);
  });

  it.each<[object, RegExp]>([
    [{ name: 'a' }, /needs either 'stdio' or 'http'/],
    [{ name: 'a b', stdio: { command: 'x' } }, /'name' must be 1 to 32 letters/],
    [{ name: 'a', stdio: { comand: 'x' } }, /has no option 'comand'/],
    [{ name: 'a', http: { url: 'file:///etc' } }, /'url' must be a URL with http or https/],
    [
      { name: 'a', stdio: { command: 'x' }, limits: { pages: 0 } },
      /'pages' must be a whole number/,
    ],
  ])('refuses wrong options with the fix: %j', (options, message) => {
    expect(() => mcpTools(options as Parameters<typeof mcpTools>[0])).toThrow(message);
    expect(() => mcp(options as Parameters<typeof mcp>[0])).toThrow(message);
  });

  it('a callback for warnings that throws is a warning itself, and fails no call', async () => {
    const onWarning = () => {
      throw new Error('no log');
    };
    const { reply, warnings } = await ran([mcp(hostile('names', { onWarning }))]);
    expect(reply.reason).toBe('answer');
    expect(warnings[1]).toBe("'onWarning' of the MCP server 'bad' failed: no log");
  });

  it('warns about each tool that is left out', async () => {
    const warnings: string[] = [];
    const onWarning = (warning: string) => void warnings.push(warning);
    await firstValueFrom(mcpTools(hostile('names', { onWarning })).pipe(take(1)));
    expect(warnings).toHaveLength(1);
  });
});

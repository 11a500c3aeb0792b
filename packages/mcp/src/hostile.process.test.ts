import { describe, expect, it } from '@jest/globals';
import { isEvent } from 'millrace';
import { mcp } from './index.js';
import { calm, hostile, ran } from './servers.test-support.js';

/** Waits that end by a time-out need no longer one. */
const brief = { connectMs: 2_000 };

describe('T20: a server that misbehaves when it is called', () => {
  it.each<[kind: string, result: RegExp, options: object]>([
    ['garbage', /^use ran$/, {}],
    [
      'noise',
      /failed to run 'use': it closed the connection|too many messages that are not valid/,
      {},
    ],
    ['prefixed', /^ran$/, {}],
    ['bad prefix', /^ran$/, {}],
    ['closes its input', /failed to run 'use': it closed the connection/, {}],
    ['closes its output', /failed to run 'use': it closed the connection/, {}],
    ['long line', /more than 100000 bytes|closed the connection/, { limits: { message: 100_000 } }],
    ['wrong ids', /timed? ?out|longer than|within/i, { timeouts: { ...brief, toolMs: 300 } }],
    ['silent call', /timed? ?out|longer than|within/i, { timeouts: { ...brief, toolMs: 300 } }],
    ['dies in a call', /it closed the connection/, {}],
    ['wrong result', /^\{"type":"spell","text":7\}$/, {}],
  ])(
    '%s: the model gets a result, and another server is not affected',
    async (kind, result, options) => {
      const { results, reply } = await ran(
        [mcp(hostile(kind, options), calm())],
        [['bad_use'], ['calm_use']],
        [['calm_use', { word: 'again' }]],
      );
      expect(results['bad_use']).toMatch(result);
      expect(results['calm_use']).toBe('use ran');
      expect(reply.reason).toBe('answer');
    },
  );

  it('is connected again after it died', async () => {
    const servers = mcp(hostile('dies in a call', { reconnect: { backoffMs: 1 } }));
    const { results, warnings } = await ran([servers], [['bad_use']]);
    expect(results['bad_use']).toContain('it closed the connection');
    expect(warnings).toEqual(["The MCP server 'bad' closed the connection."]);
    expect((await ran([servers])).tools).toEqual([['bad_use']]);
  });

  it('X6: keeps only the beginning of a result that is too large', async () => {
    const { events, results } = await ran(
      [mcp(hostile('oversized', { limits: { result: 10_000 } }))],
      [['bad_use']],
    );
    expect(results['bad_use']?.length).toBeLessThan(10_200);
    expect(results['bad_use']).not.toContain('never shown');
    expect(events.find((event) => isEvent(event, 'postActing'))).not.toHaveProperty(
      'result.details',
    );
    const { results: many } = await ran(
      [mcp(hostile('many blocks', { limits: { result: 100 } }))],
      [['bad_use']],
    );
    expect(many['bad_use']).toContain('4900 more blocks omitted');
  });

  it('shows a bounded number of progress notifications, cleaned', async () => {
    const { events, results } = await ran([mcp(hostile('much progress'))], [['bad_use']]);
    const chunks = events.flatMap((event) => (isEvent(event, 'actingChunk') ? [event.value] : []));
    expect(results['bad_use']).toBe('ran');
    expect(chunks.length).toBeGreaterThan(0);
    expect(chunks.length).toBeLessThanOrEqual(1_000);
    expect(chunks[0]).toEqual({ progress: 1, message: '[2Khello' });
  });

  it('X15: cannot pollute prototypes', async () => {
    const { tools, results } = await ran(
      [mcp(hostile('prototype'))],
      [
        ['bad_use'],
        ['bad_keys', JSON.parse('{"__proto__":{"polluted":"yes"}}') as Record<string, unknown>],
      ],
    );
    expect(tools[0]).toEqual(['bad_use', 'bad_constructor', 'bad___proto__', 'bad_keys']);
    expect(results['bad_use']).toBe('ran');
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    expect(Object.keys(Object.prototype)).toEqual([]);
  });
});

describe('T20: a server that cannot be used', () => {
  it.each<[kind: string, warning: RegExp, options: object]>([
    ['silent start', /listed no tools within 500 ms/, { timeouts: { connectMs: 500 } }],
    ['silent list', /listed no tools within 500 ms/, { timeouts: { connectMs: 500 } }],
    ['dies at start', /'bad' failed to connect: it closed the connection/, {}],
    ['dies in a list', /'bad' (closed the connection|failed to list its tools)/, {}],
    ['abyss', /failed to list its tools: Maximum call stack/, {}],
    ['endless pages', /failed to list its tools: .*listMaxPages/, { limits: { pages: 3 } }],
  ])('%s: its failure is a warning, and another server works', async (kind, warning, options) => {
    const { tools, results, warnings } = await ran(
      [mcp(hostile(kind, options), calm())],
      [['calm_use']],
    );
    expect(tools[0]).toEqual(['calm_use']);
    expect(results['calm_use']).toBe('use ran');
    expect(warnings[0]).toMatch(warning);
  });
});

describe('T20: a server that lists bad tools', () => {
  it('X13: loses the tools whose schema cannot be used, with the reason for each', async () => {
    const { tools, warnings } = await ran([mcp(hostile('bombs'))]);
    expect(tools[0]).toEqual(['bad_use', 'bad_doubling', 'bad_backtracking']);
    const reasons = warnings.filter((warning) => warning.includes('is left out'));
    expect(reasons.map((reason) => /'(\w+)'/.exec(reason)?.[1])).toEqual([
      'invalid',
      'remote',
      'ancient',
      'asynchronous',
      'nested',
      'long',
    ]);
    expect(reasons.join('\n')).toContain('its schema has 30');
  });

  it('X13: cannot block the process by a schema or a pattern', async () => {
    const { results } = await ran(
      [mcp(hostile('bombs'))],
      [['bad_doubling'], ['bad_backtracking', { word: `${'a'.repeat(40)}!` }]],
    );
    expect(results['bad_doubling']).toContain('is too complex to check');
    expect(results['bad_backtracking']).toBe('backtracking ran');
  });

  it('X14: gets names that every provider accepts, each once, and descriptions without hidden text', async () => {
    const { tools, warnings, descriptions } = await ran([mcp(hostile('names'))]);
    const [names = []] = tools;
    expect(names).toHaveLength(7);
    expect(new Set(names).size).toBe(7);
    for (const name of names) expect(name).toMatch(/^[\w-]{1,64}$/);
    expect(descriptions['bad_use']).toBe('Is use.');
    expect(descriptions['bad_sly']).toMatch(/^Reads\.\[2K long long .*…$/);
    expect(descriptions['bad_sly']?.length).toBe(4_001);
    expect(descriptions['bad_empty']).toBe('The tool empty of bad.');
    expect(warnings).toEqual([
      "'bad_rm_-rf__' of the MCP server 'bad' is left out: the name is taken. Choose the tool you need with 'include' or 'exclude', and restart.",
    ]);
  });

  it('shows no more than the limit', async () => {
    const { tools, warnings } = await ran([mcp(hostile('many tools', { limits: { tools: 5 } }))]);
    expect(tools[0]).toHaveLength(5);
    expect(warnings).toEqual([
      "The MCP server 'bad' has 300 tools; 5 are used. Choose with 'include', or raise 'limits.tools'.",
    ]);
  });
});

describe('X10: secrets', () => {
  it('of the environment are not passed on, unless the options name them', async () => {
    process.env['MILLRACE_SECRET'] = 'do-not-pass-on';
    const { results } = await ran(
      [mcp(hostile('environment', { env: { GIVEN: 'given' } }))],
      [['bad_use']],
    );
    delete process.env['MILLRACE_SECRET'];
    const seen = JSON.parse(results['bad_use'] ?? '{}') as object;
    expect(seen).toHaveProperty('PATH');
    expect(seen).toHaveProperty('GIVEN', 'given');
    expect(seen).not.toHaveProperty('MILLRACE_SECRET');
  });

  it('that a server repeats in an error are removed', async () => {
    const env = { API_KEY: 'sk-very-secret' };
    const { results } = await ran([mcp(hostile('says its secrets', { env }))], [['bad_use']]);
    expect(results['bad_use']).toContain('key [removed] is wrong');
  });
});

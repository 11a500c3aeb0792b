import { describe, expect, it, jest } from '@jest/globals';
import {
  createAgent,
  type Embedder,
  requireApproval,
  selectTools,
  tool,
  type Tool,
} from 'millrace';
import { createCallStore, inProcessCalls, journal } from 'millrace/journal';
import { sessions } from 'millrace/sessions';
import { layerContract, scriptedModel, text, toolCall } from 'millrace/testing';
import fc from 'fast-check';
import { of } from 'rxjs';
import { fortyTools } from './forty-tools.test-support.js';
import { searchTools, type SearchToolsOptions } from './search-tools.js';

const search = (query: string) => [toolCall('search_tools', { query })];

type Script = readonly ReturnType<typeof search>[];

/** The names of the tools that each request has. */
const shownTo = ({ requests }: ReturnType<typeof scriptedModel>): readonly string[][] =>
  requests.map(({ tools = [] }) => tools.map(({ name }) => name));

const play = async (
  script: Script,
  options: SearchToolsOptions = {},
  tools: readonly Tool[] = fortyTools,
) => {
  const model = scriptedModel(...script);
  const reply = await createAgent({ model, tools, use: [searchTools(options)] }).call('Go on.');
  return { reply, shown: shownTo(model), results: reply.toolCalls.map(({ output }) => output) };
};

describe('T11: searchTools', () => {
  it('shows a search, then what it has loaded, in the order of the agent', async () => {
    const { shown, results } = await play([
      search('weather'),
      search('book a flight'),
      [toolCall('get_weather')],
      [text('It rains.')],
    ]);
    expect(shown[0]).toEqual(['search_tools']);
    expect(shown[1]).toContain('get_weather');
    expect(shown[1]?.length).toBeLessThanOrEqual(6);
    expect(shown[2]).toEqual(expect.arrayContaining([...(shown[1] ?? []), 'bookFlight']));
    expect(shown[3]).toEqual(shown[2]);
    expect(results[0]).toMatch(/^Loaded: get_weather.* You can call them now\.$/);
    expect(results[2]).toBe('ran');
  });

  it('loads no more than the limit, and says what to do if nothing fits', async () => {
    const { shown, results } = await play([search('file'), search('qqqq'), [text('.')]], {
      limit: 2,
    });
    expect(shown[1]).toHaveLength(3);
    expect(shown[2]).toEqual(shown[1]);
    expect(results[1]).toBe('No tool fits "qqqq". Describe in other words what it has to do.');
  });

  it('always shows pinned tools, and the one that the call forces', async () => {
    const model = scriptedModel([toolCall('read_file')], [text('.')]);
    const use = [searchTools({ pinned: ['calculate', 'unknown'] })];
    await createAgent({ model, tools: fortyTools, use }).call('Go on.', {
      request: { toolChoice: { name: 'read_file' } },
    });
    expect(shownTo(model)[0]).toEqual(['read_file', 'calculate', 'search_tools']);
  });

  it.each([
    [{}, 20, 20],
    [{}, 21, 1],
    [{ above: 0 }, 1, 1],
    [{ above: 40 }, 40, 40],
  ])('with %j: of %d tools, the model sees %d at first', async (options, count, expected) => {
    const { shown } = await play([[text('.')]], options, fortyTools.slice(0, count));
    expect(shown[0]).toHaveLength(expected);
  });

  it('runs a tool that the model calls by its right name without a search', async () => {
    const { shown, results } = await play([[toolCall('get_weather')], [text('.')]]);
    expect(results).toEqual(['ran']);
    expect(shown[1]).toEqual(['get_weather', 'search_tools']);
  });

  it('asks for approvals of what it has loaded', async () => {
    const asked = jest.fn(() => false);
    const tools = fortyTools.map((it) => requireApproval(it, asked));
    const { results } = await play(
      [search('weather'), [toolCall('get_weather')], [text('.')]],
      {},
      tools,
    );
    expect(asked).toHaveBeenCalledTimes(1);
    expect(results[1]).toMatch(/not approved/);
  });

  it('keeps what is loaded in the next call of a session, also of one that was saved', async () => {
    const model = scriptedModel(search('weather'), [text('.')], [text('.')]);
    const agent = createAgent({ model, tools: fortyTools, use: [searchTools()] });
    const chat = sessions(agent).open('a');
    await chat.call('Go on.');
    const saved: unknown = JSON.parse(JSON.stringify(await chat.saveState()));
    const other = sessions(agent).open('b');
    await other.loadState(saved);
    await other.call('And tomorrow?');
    expect(shownTo(model)[2]).toEqual(shownTo(model)[1]);
    expect(shownTo(model)[2]).toContain('get_weather');
  });

  it('keeps it in a call that is resumed, without another search', async () => {
    const durable = journal(createCallStore(inProcessCalls()));
    const select = jest.fn(() => ['get_weather']);
    const agent = (...script: Script) => {
      const model = scriptedModel(...script);
      const use = [searchTools({ select }), durable];
      return { model, agent: createAgent({ model, tools: fortyTools, use }) };
    };
    const before = agent(search('weather'));
    const failed = before.agent.call('Go on.', { callId: 'c' });
    await expect(failed).rejects.toThrow();
    const after = agent([toolCall('get_weather')], [text('Snow.')]);
    const reply = await durable.resume(after.agent, 'c');
    expect(reply.text).toBe('Snow.');
    expect(shownTo(after.model)[0]).toEqual(['get_weather', 'search_tools']);
    expect(select).toHaveBeenCalledTimes(1);
  });

  it('finds tools that were added to the call meanwhile', async () => {
    const late = tool({ name: 'late', description: 'Brews coffee.', run: () => 'brewed' });
    const adding = tool({
      name: 'adding',
      description: 'Adds.',
      run: (_input, { toolkit }) => {
        toolkit.add(late);
        return 'added';
      },
    });
    const script = [[toolCall('adding')], search('brew coffee'), [toolCall('late')], [text('.')]];
    const { results } = await play(script, {}, [...fortyTools, adding]);
    expect(results[2]).toBe('brewed');
  });

  it('searches tools as soon as there are more than the limit, and shows all when there are fewer again', async () => {
    const late = fortyTools.slice(0, 30);
    const changing = tool({
      name: 'connect',
      description: 'Connects a server.',
      run: (_input, { toolkit }) => {
        late.forEach((it) => toolkit.add(it));
        return 'connected';
      },
    });
    const leaving = tool({
      name: 'disconnect',
      description: 'Disconnects it.',
      run: (_input, { toolkit }) => {
        late.forEach((it) => toolkit.remove(it.name));
        return 'disconnected';
      },
    });
    const script = [
      [toolCall('connect')],
      search('weather'),
      [toolCall('disconnect')],
      [text('.')],
    ];
    const { shown, results } = await play(script, {}, [changing, leaving]);
    expect(shown[0]).toEqual(['connect', 'disconnect']);
    expect(shown[1]).toEqual(['connect', 'search_tools']);
    expect(shown[2]).toContain('get_weather');
    expect(results[1]).toMatch(/^Loaded: .*get_weather/);
    expect(shown[3]).toEqual(['connect', 'disconnect']);
  });

  it('searches what selectTools has left', async () => {
    const model = scriptedModel(search('weather forecast'), [text('.')]);
    const select = () => fortyTools.slice(1).map(({ name }) => name);
    const use = [searchTools(), selectTools({ select })];
    const agent = createAgent({ model, tools: fortyTools, use });
    await agent.call('Go on.');
    expect(shownTo(model)[1]).not.toContain('get_weather');
  });

  it('searches by meaning, too: first what both find', async () => {
    const isRain = (it: string) => /rain|deploy/i.test(it);
    const embedder: Embedder = {
      embed$: (texts) => of(texts.map((it) => (isRain(it) ? [1, 0] : [0, 1]))),
    };
    const { results } = await play([search('Will it rain?'), [text('.')]], { embedder, limit: 2 });
    expect(results[0]).toMatch(/^Loaded: get_weather, deploy_service\./);
  });

  it.each([
    ['fails', () => Promise.reject(new Error('down')), /^Failed: .*down/],
    ['names others', () => ['nonsense'], /^No tool fits/],
    ['repeats one', () => ['mail', 'get_weather', 'get_weather'], /^Loaded: get_weather\./],
  ])('reports to the model when a search of yours %s', async (_name, select, expected) => {
    const { results } = await play([search('rain'), [text('.')]], { select });
    expect(results[0]).toMatch(expected);
  });

  it('fails the call if a search of yours returns no list of names', async () => {
    const select = () => 'get_weather' as never;
    const failed = play([search('rain'), [text('.')]], { select });
    await expect(failed).rejects.toMatchObject({ code: 'config' });
  });

  it.each([
    [{ limit: 0 }, /'limit'/],
    [{ pinned: 'calculate' }, /'pinned'/],
    [{ embedder: {} }, /'embedder'/],
    [{ top: 3 }, /'top'/],
  ])('refuses the options %j', (options, expected) => {
    expect(() => searchTools(options as never)).toThrow(expected);
  });

  it('refuses a tool of its name, which another name avoids', async () => {
    const tools = [
      ...fortyTools,
      tool({ name: 'search_tools', description: 'Mine.', run: () => 'mine' }),
    ];
    await expect(play([[text('.')]], {}, tools)).rejects.toThrow(/search_tools/);
    const { shown } = await play([[text('.')]], { name: 'find_tools' }, tools);
    expect(shown[0]).toEqual(['find_tools']);
  });

  it('shows the tools that are pinned, loaded or called, in every conversation', async () => {
    const names = fortyTools.map(({ name }) => name);
    const picked = fc.uniqueArray(fc.constantFrom(...names), { maxLength: 4 });
    const turn = fc.record({ found: picked, called: picked });
    await fc.assert(
      fc.asyncProperty(picked, fc.array(turn, { maxLength: 4 }), async (pinned, turns) => {
        const script = turns.map(({ found, called }) => [
          toolCall('search_tools', { query: found.join(' ') || 'nothing' }),
          ...called.map((name) => toolCall(name)),
        ]);
        const select: SearchToolsOptions['select'] = ({ text: query }) => query.split(' ');
        const { shown, results } = await play([...script, [text('.')]], { pinned, select });
        let expected = new Set(pinned);
        shown.forEach((shownNow, index) => {
          expect(shownNow).toEqual([...names.filter((it) => expected.has(it)), 'search_tools']);
          const { found = [], called = [] } = turns[index] ?? {};
          expected = new Set([...expected, ...found, ...called]);
        });
        expect(results.filter((it) => it === 'ran')).toHaveLength(
          turns.flatMap(({ called }) => called).length,
        );
      }),
      { numRuns: 30 },
    );
  });

  describe('is a layer that leaves calls as they are', () => {
    for (const { name, run } of layerContract(() => searchTools({ above: 0 }))) it(name, run);
  });
});

import { describe, expect, it } from '@jest/globals';
import { readFileSync, writeFileSync } from 'node:fs';
import { concat, from, of } from 'rxjs';
import { agentTool } from '../../layers/teams/index.js';
import type { ModelRequest } from '../../models/model.js';
import { createAgent, type Model, tool } from '../../index.js';
import { cassette, finish, scriptedModel, text, toolCall } from '../index.js';
import {
  asking,
  chunksOf,
  isolate,
  never,
  newFile,
  recordedBy,
  stored,
} from './cassette.test-support.js';

isolate();

const weather = tool({ name: 'weather', description: 'Tells the weather.', run: () => 'Snow.' });

describe('cassette', () => {
  it('records a call, then replays it without asking the model', async () => {
    const file = newFile();
    const ask = (model: Model) => createAgent({ model, tools: [weather] }).call('Oslo?');
    const scripted = scriptedModel([text('Let me see.'), toolCall('weather')], [text('It snows.')]);
    const live = await ask(cassette(file, scripted));
    cassette(file, never).verify();
    const replay = cassette(file, never);
    const again = await ask(replay);
    expect(again.text).toBe('It snows.');
    expect(again.toolCalls).toMatchObject(
      live.toolCalls.map(({ name, output }) => ({ name, output })),
    );
    expect(replay.requests).toHaveLength(2);
    expect(() => replay.verify()).not.toThrow();
  });

  it('writes JSON with a line for each event, and a conversation once', async () => {
    const model = scriptedModel(
      concat(
        of(text('It ')),
        from([text('snows in the mountains, as it does every year.'), finish()]),
      ),
      [text('Yes.')],
    );
    const first = asking('Oslo?', { system: 'Be brief.' });
    const answer = {
      id: 'a',
      role: 'assistant',
      content: [{ type: 'text', text: 'It snows.' }],
    } as const;
    const more = { ...first, messages: [...first.messages, answer, ...asking('Sure?').messages] };
    const file = await recordedBy(model, [first, more]);
    const ms = /\[\d+, /g;
    expect(readFileSync(file, 'utf8').replace(ms, '[0, ')).toBe(`{
  "version": 1,
  "recordings": [
    {
      "model": "scripted",
      "request": {
        "system": "Be brief.",
        "messages": [
          { "id": "m1", "role": "user", "content": [{ "type": "text", "text": "Oslo?" }] }
        ]
      },
      "events": [
        [0, "It "],
        [0, "snows in the mountains, as it does every year."],
        [0, { "type": "finish", "finish": "stop" }]
      ],
      "end": [0, "completed"]
    },
    {
      "model": "scripted",
      "request": {
        "extends": 0,
        "messages": [
          { "id": "m2", "role": "assistant", "content": [{ "type": "text", "text": "It snows." }] },
          { "id": "m3", "role": "user", "content": [{ "type": "text", "text": "Sure?" }] }
        ]
      },
      "events": [[0, "Yes."], [0, { "type": "finish", "finish": "stop" }]],
      "end": [0, "completed"]
    }
  ]
}
`);
    expect(await chunksOf(cassette(file, never), more)).toEqual([text('Yes.'), finish()]);
  });

  it('keeps the name and the abilities of the model', () => {
    const model: Model = { ...never, name: 'm', unsupported: ['toolChoice'], keepsTime: true };
    const { name, unsupported, keepsTime } = cassette(newFile(), model);
    expect([name, unsupported, keepsTime]).toEqual(['m', ['toolChoice'], true]);
  });

  it('lets models share a file, and distinguishes their requests', async () => {
    const file = newFile();
    const [large, small] = ['large', 'small'].map((name) => ({
      ...scriptedModel([text(name)]),
      name,
    }));
    if (large === undefined || small === undefined) throw new Error('no models');
    const both = (a: Model, b: Model) => Promise.all([chunksOf(a), chunksOf(b)]);
    await both(cassette(file, large), cassette(file, small));
    cassette(file, never).verify();
    const replays = [
      cassette(file, { ...never, name: 'small' }),
      cassette(file, { ...never, name: 'large' }),
    ] as const;
    expect(await both(...replays)).toEqual([
      [text('small'), finish()],
      [text('large'), finish()],
    ]);
    replays[0].verify();
  });
});

describe('the requests of a replay', () => {
  it('may differ in an option alone', async () => {
    const model = scriptedModel([text('cold')], [text('hot')]);
    const file = await recordedBy(
      model,
      [0, 1].map((temperature) => asking('?', { temperature })),
    );
    const replay = cassette(file, never);
    expect(await chunksOf(replay, asking('?', { temperature: 1 }))).toEqual([
      text('hot'),
      finish(),
    ]);
    expect(await chunksOf(replay, asking('?', { temperature: 0 }))).toEqual([
      text('cold'),
      finish(),
    ]);
  });

  it('may come in another order', async () => {
    const model = scriptedModel([text('A')], [text('B')], [text('A again')]);
    const file = await recordedBy(model, [asking('a'), asking('b'), asking('a')]);
    const replay = cassette(file, never);
    const words = ['b', 'a', 'a'].map((it) =>
      chunksOf(replay, asking(it)).then(([first]) => first),
    );
    expect(await Promise.all(words)).toEqual([text('B'), text('A'), text('A again')]);
    replay.verify();
  });

  it('may have other ids', async () => {
    const request = (id: string): ModelRequest => ({
      messages: [
        {
          id: `${id}/1`,
          role: 'assistant',
          content: [{ type: 'tool_call', id, name: 'f', input: {} }],
        },
        {
          id: `${id}/2`,
          role: 'tool',
          content: [
            {
              type: 'tool_result',
              toolCallId: id,
              content: [{ type: 'text', text: `File ${id} is there.` }],
              isError: false,
              details: { shown: Math.random() },
            },
          ],
        },
      ],
    });
    const calls = await recordedBy(scriptedModel([text('a')]), [asking('call 0123456789abcdef')]);
    await chunksOf(cassette(calls, never), asking('call fedcba9876543210'));
    const orders = await recordedBy(scriptedModel([text('a')]), [asking('order 1234567890123456')]);
    const another = chunksOf(cassette(orders, never), asking('order 1234567890123457'));
    await expect(another).rejects.toThrow(/equals no recording/);
    const [one, other] = [crypto.randomUUID(), crypto.randomUUID()];
    const file = await recordedBy(scriptedModel([text('Fine.')]), [request(one)]);
    expect(readFileSync(file, 'utf8')).not.toContain('shown');
    expect(await chunksOf(cassette(file, never), request(other))).toEqual([
      text('Fine.'),
      finish(),
    ]);
  });

  it('fail with a difference if no recording equals them', async () => {
    const model = scriptedModel([text('1')], [text('2')]);
    const system = ['Be brief.', ...Array.from({ length: 9 }, (_, at) => `Rule ${at}.`)].join('\n');
    const requests = [asking('Go away.'), asking('How is Oslo?', { system, temperature: 0 })];
    const file = await recordedBy(model, requests);
    const replay = cassette(file, never);
    const request = asking('How is Rome?', { system, temperature: 1 });
    await expect(chunksOf(replay, request)).rejects.toMatchObject({
      code: 'invalidRequest',
      retryable: false,
      message: `Request 1 to the model 'scripted' equals no recording that is left in the cassette '${file}'. Recording 2 is the most similar (- recorded, + sent):

        {
          "content": [
            {
-             "text": "How is Oslo?",
+             "text": "How is Rome?",
              "type": "text"
            }
          ],
  …
  Rule 6.\\n
  Rule 7.\\n
  Rule 8.",
-     "temperature": 0
+     "temperature": 1
    }
  }

To record again, delete the file or set MILLRACE_CASSETTES=record.`,
    });
    expect(() => replay.verify()).toThrow(/equals no recording/);
  });

  it('show long and many lines in part', async () => {
    const words = (count: number, word: string) =>
      Array.from({ length: count }, () => word).join(' ');
    const file = await recordedBy(scriptedModel([text('.')]), [asking(`${words(90, 'same')} old`)]);
    const long: unknown = await chunksOf(
      cassette(file, never),
      asking(`${words(90, 'same')} new`),
    ).catch(({ message }: Error) => message);
    expect(long).toMatch(
      /\n- {13}…(?:same )+old",\n\+ {13}…(?:same )+new",\n|- …[^\n]+ old",\n\+ …[^\n]+ new",/,
    );
    const lines = (word: string) =>
      Array.from({ length: 100 }, (_, at) => `${word} ${at}`).join('\n');
    const many = await recordedBy(scriptedModel([text('.')]), [asking(lines('old'))]);
    await expect(chunksOf(cassette(many, never), asking(lines('new')))).rejects.toThrow(
      /\n {2}… 1\d\d more lines\n/,
    );
  });

  it('fail if there are more of them than recordings, or fewer', async () => {
    const file = await recordedBy(scriptedModel([text('1')], [text('2')]), [
      asking('a'),
      asking('b'),
    ]);
    const replay = cassette(file, never);
    await chunksOf(replay, asking('a'));
    expect(() => replay.verify()).toThrow(/has 2 recordings, but only 1 were asked for/);
    await chunksOf(replay, asking('b'));
    await expect(chunksOf(replay, asking('b'))).rejects.toThrow(
      /Request 3 to the model 'scripted' has no recording .* all 2 are played/,
    );
  });

  it('end the call above, too, if a sub-agent makes them', async () => {
    const file = newFile();
    const team = (model: Model, words: string) => {
      const helper = createAgent({ name: 'helper', model, instructions: words });
      const tools = [agentTool(helper, { description: 'Helps.' })];
      return createAgent({ name: 'boss', model, tools }).call('Go!');
    };
    const script = [
      [toolCall('helper', { user_prompt: 'Help!' })],
      [text('Helped.')],
      [text('Done.')],
    ];
    await team(cassette(file, scriptedModel(...script)), 'Be brief.');
    cassette(file, never).verify();
    const replay = cassette(file, never);
    await expect(team(replay, 'Be long.')).rejects.toMatchObject({
      code: 'invalidRequest',
      message: expect.stringMatching(/-[^\n]+Be brief\.[^\n]*\n\+[^\n]+Be long\./),
    });
    expect(replay.requests).toHaveLength(2);
  });

  it('may differ in what is ignored or normalized away', async () => {
    const on = (date: string) => asking(`It is ${date}.`, { temperature: Math.random() });
    const file = await recordedBy(scriptedModel([text('.')]), [on('2026-01-02')]);
    const replay = cassette(file, never, {
      ignore: /\d{4}-\d\d-\d\d/,
      normalize: ({ temperature: _temperature, ...request }) => request,
    });
    await expect(chunksOf(replay, asking('It is noon.'))).rejects.toThrow(/- .*It is \[ignored\]/);
    expect(await chunksOf(replay, on('2027-03-04'))).toEqual([text('.'), finish()]);
  });
});

describe('the mode of a cassette', () => {
  it('never records in CI, unless the mode says that', async () => {
    process.env['CI'] = 'true';
    const file = newFile();
    expect(() => cassette(file, never)).toThrow(
      `The cassette '${file}' does not exist, and nothing is recorded if the variable CI is set. Run the test on a machine that can reach the model, with MILLRACE_CASSETTES=record, and commit the file.`,
    );
    process.env['MILLRACE_CASSETTES'] = 'record';
    await chunksOf(cassette(file, scriptedModel([text('a')])));
    process.env['MILLRACE_CASSETTES'] = '';
    cassette(file, never).verify();
    expect(await chunksOf(cassette(file, never))).toEqual([text('a'), finish()]);
    process.env['CI'] = 'false';
    expect(() => cassette(newFile(), never)).not.toThrow();
  });

  it('records again by the variable, once in a process', async () => {
    const file = newFile();
    writeFileSync(file, JSON.stringify({ version: 1, recordings: [] }));
    process.env['MILLRACE_CASSETTES'] = 'record';
    const first = cassette(file, scriptedModel([text('new')]));
    await chunksOf(first);
    first.verify();
    const second = cassette(file, never);
    expect(await chunksOf(second)).toEqual([text('new'), finish()]);
    second.verify();
    expect(stored(file).recordings).toHaveLength(1);
  });

  it('adds to the recordings of an earlier test of the process that did not verify', async () => {
    const file = newFile();
    await chunksOf(cassette(file, scriptedModel([text('1')])), asking('a'));
    await chunksOf(cassette(file, scriptedModel([text('2')])), asking('b'));
    expect(stored(file).recordings).toHaveLength(2);
  });

  it('replays from the start for the next test', async () => {
    const file = await recordedBy(scriptedModel([text('a')]));
    await chunksOf(cassette(file, never));
    expect(await chunksOf(cassette(file, never))).toEqual([text('a'), finish()]);
  });

  it('replays from the start after a test that failed', async () => {
    const requests = [asking('a'), asking('b')] as const;
    const file = await recordedBy(scriptedModel([text('A')], [text('B')]), requests);
    const mistaken = cassette(file, never);
    await expect(chunksOf(mistaken, asking('c'))).rejects.toThrow(/equals no recording/);
    const stopped = cassette(file, never);
    await chunksOf(stopped, requests[0]);
    const retried = cassette(file, never);
    expect(await chunksOf(retried, requests[0])).toEqual([text('A'), finish()]);
    expect(await chunksOf(retried, requests[1])).toEqual([text('B'), finish()]);
    retried.verify();
    expect(() => mistaken.verify()).toThrow(/equals no recording/);
    expect(() => stopped.verify()).toThrow(/only 1 were asked for/);
  });

  it('as an option takes precedence over the variable', () => {
    process.env['MILLRACE_CASSETTES'] = 'record';
    const file = newFile();
    expect(() => cassette(file, never, { mode: 'replay' })).toThrow(
      /does not exist\. Run the test/,
    );
  });

  it('is refused if it is unknown', () => {
    process.env['MILLRACE_CASSETTES'] = 'rewind';
    expect(() => cassette(newFile(), never)).toThrow(
      /must be record, replay or auto, not 'rewind'/,
    );
    expect(() => cassette(newFile(), never, { mode: 'rewind' as never })).toThrow(
      /'mode' must be 'auto' or 'record' or 'replay'/,
    );
    expect(() => cassette(newFile(), never, { speed: 0 })).toThrow(/'speed'/);
    expect(() => cassette(newFile(), never, { redact: [''] })).toThrow(/'redact'/);
    expect(() => cassette(never as never, never)).toThrow(/takes the path or URL of a file/);
    expect(() => cassette(newFile(), 'gpt' as never)).toThrow(/cassette\(\) takes a model/);
  });
});

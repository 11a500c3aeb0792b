import { afterEach, describe, expect, it } from '@jest/globals';
import { defaultCaps, exchange$ } from '@millrace/wire';
import {
  createAgent,
  type EventOf,
  MillraceError,
  type Model,
  type ModelChunk,
  on,
  textBlock,
  tool,
  transient,
} from 'millrace';
import { createCallStore, inProcessCalls, journal, replay$ } from 'millrace/journal';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { cost } from 'millrace/traffic';
import { request as httpRequest } from 'node:http';
import {
  concat,
  EMPTY,
  firstValueFrom,
  lastValueFrom,
  map,
  mergeMap,
  NEVER,
  of,
  Subject,
  throwError,
  toArray,
} from 'rxjs';
import { createDevtools, devtools, type DevtoolsOptions } from './index.js';
import { openPage, type PageClient } from './page-client.test-support.js';
import { type CallEntry, type FeedLine, isMark } from './page/protocol.js';

const streamOf = (pieces: readonly string[]): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start: (controller) => {
      for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
      controller.close();
    },
  });

const weather = tool({ name: 'weather', description: 'The weather.', run: () => 'Sunny' });

/** Neither is JSON. */
const cyclic: Record<string, unknown> = { n: 5n };
Object.assign(cyclic, { self: cyclic });
const odd = map((event: EventOf<'postCall'>) => ({
  ...event,
  reply: { ...event.reply, output: cyclic },
}));

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

const started = (options: DevtoolsOptions = {}) => {
  const printed: string[] = [];
  const print = (line: string): number => printed.push(line);
  const dev = createDevtools({ enabled: true, port: 0, print, ...options });
  closing.push(dev.close);
  return { ...dev, printed };
};

const opened = async (options: DevtoolsOptions = {}) => {
  const dev = started(options);
  const address = await firstValueFrom(dev.address$);
  const page = await openPage(address);
  closing.push(page.leave);
  return { ...dev, address, page };
};

const entryOf = ({ lines }: PageClient, id: string): CallEntry | undefined =>
  lines
    .flatMap((line: FeedLine) => (line.line === 'calls' ? line.calls : []))
    .findLast((call) => call.id === id);

describe('devtools', () => {
  it('are off in tests and in production: the agent stays what it is', async () => {
    const agent = createAgent({ model: scriptedModel([text('Hi.')]) });
    expect(devtools(agent)).toBe(agent);
    const mode = process.env['NODE_ENV'];
    process.env['NODE_ENV'] = 'production';
    const dev = createDevtools();
    process.env['NODE_ENV'] = mode;
    expect(dev.inspect(agent)).toBe(agent);
    expect(await lastValueFrom(dev.address$, { defaultValue: 'none' })).toBe('none');
    dev.close();
  });

  it('have each request as the provider got it, and its response, without keys', async () => {
    const { inspect, page } = await opened();
    const key = 'sk-of-this-test-0123456789';
    const other = 'sk-of-another-vendor-12345678';
    const body =
      'data: {"type":"text","text":"Hi."}\n\ndata: {"type":"finish","finish":"stop"}\n\n: ';
    const pieces = [body + key.slice(0, 9), `${key.slice(9)} ${other.slice(0, 9)}`, other.slice(9)];
    const provider: Model = {
      name: 'acme',
      stream$: ({ messages }, context) =>
        exchange$(
          {
            vendor: 'Acme',
            secrets: [key],
            request: () => ({
              url: 'https://acme.example/v1',
              headers: { authorization: `Bearer ${key}`, 'x-token': 'letters', 'x-tag': other },
              body: JSON.stringify({ prompt: messages.length, other }),
            }),
            fetch: () => Promise.resolve(new Response(streamOf(pieces))),
            read: ({ data }) => [data as ModelChunk],
            readWhole: () => [],
            caps: defaultCaps,
          },
          context,
        ),
    };
    await inspect(createAgent({ model: provider })).call('Hi', { callId: 'c' });
    const requests = () =>
      page.items('c').flatMap((it) => (isMark(it) && it.mark === 'request' ? [it.id] : []));
    await page.until(() => requests().length === 2);
    const [id = ''] = requests();
    const answer = await page.ask('GET', `exchanges/${encodeURIComponent(id)}`);
    expect(await answer.json()).toEqual([
      {
        at: expect.any(Number),
        url: 'https://acme.example/v1',
        headers: {
          ...{ authorization: 'Bearer [redacted]', 'x-token': '[redacted]', 'x-tag': '[redacted]' },
        },
        ...{ body: '{"prompt":1,"other":"[redacted]"}', omitted: 0 },
        response: {
          at: expect.any(Number),
          status: 200,
          body: `${body}[redacted] [redacted]`,
          omitted: 0,
        },
      },
    ]);
    expect(await (await page.ask('GET', 'exchanges/none')).json()).toEqual([]);
  });

  it('print the address, and show a call with its list entry, log and layers', async () => {
    const { inspect, page, printed, address } = await opened();
    expect(printed).toEqual([`Devtools: ${address}`]);
    expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#token=[\da-f]{32}$/);
    const model = scriptedModel([toolCall('weather')], [text('Sunny, '), text('15 °C.')]);
    const agent = inspect(createAgent({ name: 'forecast', model, tools: [weather] }));
    await agent.call('How is it?', { callId: 'c' });
    await page.until(() => entryOf(page, 'c')?.status === 'done');
    expect(page.lines[0]).toMatchObject({ line: 'hello', source: 'agents' });
    expect(entryOf(page, 'c')).toMatchObject({
      ...{ agent: 'forecast', input: 'How is it?', answer: 'Sunny, 15 °C.', reason: 'answer' },
      ...{ isInspected: true, isOpen: true },
    });
    await page.until(() => page.items('c').some((it) => 'type' in it && it.type === 'postCall'));
    const layers = page.lines.find(({ line }) => line === 'layers');
    expect(layers).toMatchObject({ id: 'c', callId: 'c' });
    const found: unknown = await (await page.ask('GET', 'search?q=15%20%C2%B0c')).json();
    expect(found).toEqual({ ids: ['c'] });
  });

  it('count the tools that failed, and no tool call that was vetoed', async () => {
    const { inspect, page } = await opened();
    const closed = tool({
      name: 'tickets',
      description: 'Sells tickets.',
      run: () => throwError(() => new Error('The counter is closed.')),
    });
    const model = () =>
      scriptedModel([toolCall('weather', {}), toolCall('tickets', {})], [text('Hi.')]);
    const tools = [weather, closed];
    const veto = <T extends 'preActing' | 'postActing'>(type: T) =>
      inspect(
        createAgent({
          model: model(),
          tools,
          use: [
            on(
              type,
              mergeMap(() => EMPTY),
            ),
          ],
        }),
      );
    const failing = inspect(createAgent({ model: model(), tools }));
    await lastValueFrom(failing.call$('?', { callId: 'failing' }));
    await lastValueFrom(veto('preActing').call$('?', { callId: 'before' }));
    await lastValueFrom(veto('postActing').call$('?', { callId: 'after' }));
    await page.until(() => entryOf(page, 'after')?.status === 'done');
    const counts = ['failing', 'before', 'after'].map((id) => entryOf(page, id)?.failedTools);
    expect(counts).toEqual([1, undefined, undefined]);
  });

  it('list what calls cost, also those that fail', async () => {
    const { inspect, page } = await opened();
    const spent = { type: 'usage', usage: { inputTokens: 3 } } as const;
    const broken = concat(
      of(spent),
      throwError(() => new MillraceError('auth', 'No.')),
    );
    const model = scriptedModel([text('Hi.'), spent], broken);
    const prices = { scripted: { input: 1e6, output: 0 } };
    const list = { currency: 'EUR', date: '2026-11-30', prices };
    const agent = inspect(createAgent({ name: 'a', model, use: [cost(list)] }));
    await agent.call('?', { callId: 'c' });
    await agent.call('?', { callId: 'd' }).catch(() => undefined);
    await page.until(() => entryOf(page, 'c')?.cost !== undefined);
    expect(entryOf(page, 'c')?.cost).toBe('3.00 EUR');
    await page.until(() => entryOf(page, 'd')?.status === 'failed');
    expect(entryOf(page, 'd')?.cost).toBe('3.00 EUR');
  });

  it('hold a call, and continue it with an edit, which a journal records', async () => {
    const durable = journal(createCallStore(inProcessCalls()));
    const { inspect, page } = await opened({ journal: durable });
    const model = scriptedModel([text('Wrong.')]);
    const agent = inspect(createAgent({ model, use: [durable] }));
    expect((await page.ask('PUT', 'breakpoints', [{ type: 'postReasoning' }])).status).toBe(204);
    const reply = agent.call('Hi', { callId: 'c' });
    await page.until(() => page.lines.some((it) => it.line === 'holds' && it.holds.length > 0));
    expect(entryOf(page, 'c')?.status).toBe('held');
    const held = page.lines.flatMap((it) => (it.line === 'holds' ? it.holds : []));
    const event: Record<string, unknown> = { ...held[0]?.event };
    const message = { ...(event['message'] as object), content: [textBlock('Right.')] };
    const edit = { action: 'continue', event: { ...event, message } };
    expect((await page.ask('POST', `holds/${held[0]?.id ?? ''}`, edit)).status).toBe(204);
    expect((await reply).text).toBe('Right.');
    const events = await lastValueFrom(
      replay$(durable.store, 'c', { speed: Infinity }).pipe(toArray()),
    );
    expect(JSON.stringify(events.at(-1))).toContain('Right.');
    expect((await durable.resume(agent, 'c')).text).toBe('Right.');
    expect((await page.ask('POST', 'holds/none', { action: 'veto' })).status).toBe(404);
  });

  it('fork a call at a step with an edit, without a journal of its own', async () => {
    const { inspect, page } = await opened({ forks: true });
    const model = scriptedModel([toolCall('weather')], [text('Sunny.')], (request) => [
      text(JSON.stringify(request.messages).includes('Rainy') ? 'Rainy.' : 'Lost.'),
    ]);
    const agent = inspect(createAgent({ name: 'forecast', model, tools: [weather] }));
    await agent.call('How is it?', { callId: 'c' });
    await page.until(() => entryOf(page, 'c')?.status === 'done');
    const answer = await page.ask('POST', 'calls/c/fork', { at: '2', edits: { '1/0': 'Rainy' } });
    const { id } = (await answer.json()) as { readonly id: string };
    await page.until(() => entryOf(page, id)?.status === 'done');
    expect(entryOf(page, id)).toMatchObject({
      ...{ answer: 'Rainy.', input: 'How is it?', agent: 'forecast' },
      forkedFrom: { callId: 'c', at: '2' },
    });
    const again = await page.ask('POST', `calls/${id}/fork`, { at: '9' });
    expect([again.status, ((await again.json()) as { error: string }).error]).toEqual([
      400,
      expect.stringContaining("has no step '9'"),
    ]);
    const wrong = await page.ask('POST', 'calls/c/fork', { at: '2', edits: { open: 'x' } });
    expect(((await wrong.json()) as { error: string }).error).toMatch(/'open' cannot be edited/);
    // Two answers of the script are left for nobody.
    model.verify();
  });

  it('run a fork with the agent that made the call, also if others have its name', async () => {
    const { inspect, page } = await opened({ forks: true });
    inspect(createAgent({ model: scriptedModel([text('I am first.')]) }));
    const model = scriptedModel([toolCall('weather')], [text('Hi.')], [text('I am second.')]);
    await inspect(createAgent({ model, tools: [weather] })).call('Who?', { callId: 'c' });
    await page.until(() => entryOf(page, 'c')?.status === 'done');
    const answer = await page.ask('POST', 'calls/c/fork', { at: '2' });
    const { id } = (await answer.json()) as { readonly id: string };
    await page.until(() => entryOf(page, id)?.status === 'done');
    expect(entryOf(page, id)?.answer).toBe('I am second.');
  });

  it('change nothing of a call that they do not record', async () => {
    const { inspect, page } = await opened();
    const model = scriptedModel([text('One.')], [text('Two.')]);
    const agent = inspect(createAgent({ model, use: [on('postCall', odd)] }));
    const call = () => agent.call('Hi', { callId: 'same' });
    expect((await call()).output).toBe(cyclic);
    expect((await call()).text).toBe('Two.');
    await page.until(() => entryOf(page, 'same')?.unforkable !== undefined);
    expect(entryOf(page, 'same')?.unforkable).toMatch(/forks: true/);
  });

  it('leave an agent its journal, and say how to fork its calls', async () => {
    const durable = journal(createCallStore(inProcessCalls()));
    const { inspect, page } = await opened({ forks: true });
    const agent = inspect(createAgent({ model: scriptedModel([text('Hi.')]), use: [durable] }));
    await agent.call('Hi', { callId: 'c' });
    await page.until(() => entryOf(page, 'c')?.status === 'done');
    expect(entryOf(page, 'c')?.unforkable).toMatch(/devtools\(agent, \{ journal \}\)/);
    expect((await page.ask('POST', 'calls/c/fork', { at: '2' })).status).toBe(409);
    const events = replay$(durable.store, 'c', { speed: Infinity }).pipe(toArray());
    expect((await lastValueFrom(events)).at(-1)?.type).toBe('postCall');
  });

  it('interrupt a running call', async () => {
    const { inspect, page } = await opened();
    const agent = inspect(createAgent({ model: scriptedModel(NEVER) }));
    const reply = agent.call('Hi', { callId: 'c' });
    await page.until(() => entryOf(page, 'c')?.status === 'running');
    expect((await page.ask('POST', 'calls/c/interrupt', { message: 'Enough.' })).status).toBe(204);
    expect(await reply).toMatchObject({ reason: 'interrupted', text: 'Enough.' });
    expect((await page.ask('POST', 'calls/c/interrupt')).status).toBe(409);
  });

  it('join a call that began before the page was open', async () => {
    const dev = started();
    const answer$ = new Subject<ReturnType<typeof text>>();
    const agent = dev.inspect(createAgent({ model: scriptedModel(answer$.asObservable()) }));
    const reply = agent.call('Hi', { callId: 'c' });
    const page = await openPage(await firstValueFrom(dev.address$));
    closing.push(page.leave);
    answer$.next(text('late'));
    answer$.next({ type: 'finish', finish: 'stop' } as never);
    answer$.complete();
    await reply;
    await page.until(() => entryOf(page, 'c')?.status === 'done');
    expect(entryOf(page, 'c')).toMatchObject({ isInspected: false, answer: 'late' });
  });

  it('record every call if they are kept open', async () => {
    const dev = started({ keepOpen: true });
    const agent = dev.inspect(createAgent({ model: scriptedModel([text('Early.')]) }));
    await agent.call('Hi', { callId: 'c' });
    const page = await openPage(await firstValueFrom(dev.address$));
    closing.push(page.leave);
    await page.until(() => entryOf(page, 'c')?.answer === 'Early.');
    expect(entryOf(page, 'c')?.isInspected).toBe(true);
  });

  it('forget the oldest of many calls', async () => {
    const { inspect, page } = await opened();
    const answers = Array.from({ length: 60 }, () => [text('Hi.')]);
    const agent = inspect(createAgent({ model: scriptedModel(...answers) }));
    for (let index = 0; index < 60; index += 1) await agent.call('Hi', { callId: `c${index}` });
    await page.until(() => entryOf(page, 'c59')?.status === 'done');
    const removed = page.lines.flatMap((it) => (it.line === 'removed' ? it.ids : []));
    const known = new Set(
      page.lines.flatMap((it) => (it.line === 'calls' ? it.calls : [])).map(({ id }) => id),
    );
    expect(known.size - removed.length).toBeLessThanOrEqual(51);
  });

  it('show anything that tools return and throw', async () => {
    const cycle: Record<string, unknown> = { big: 10n, do: () => 1 };
    cycle['self'] = cycle;
    const odd = tool({
      name: 'odd',
      description: 'Odd.',
      run: () => ({ type: 'output', content: [textBlock('x'.repeat(3_000_000))], details: cycle }),
    });
    const bad = tool({
      name: 'bad',
      description: 'Bad.',
      run: () => {
        throw transient('Broken.');
      },
    });
    const { inspect, page } = await opened();
    const model = scriptedModel([toolCall('odd'), toolCall('bad')], [text('Done.')]);
    await inspect(createAgent({ model, tools: [odd, bad] })).call('Hi', { callId: 'c' });
    await page.until(() => entryOf(page, 'c')?.status === 'done');
    await page.until(() => page.items('c').some((it) => 'type' in it && it.type === 'postCall'));
    expect(JSON.stringify(page.items('c')).length).toBeLessThan(4_000_000);
  });

  it.each([
    [{ port: -1 }, /'port'/],
    [{ token: 'short' }, /^(?!.*short).*'token'/],
    [{ journal: {} as never }, /'journal'/],
    [{ opne: true } as never, /opne/],
  ])('refuse the options %j', (options, message) => {
    expect(() => createDevtools({ enabled: true, ...options })).toThrow(message);
  });

  it('refuse what is not an agent, and report a port that is taken', async () => {
    expect(() => devtools({} as never)).toThrow(/takes an agent/);
    const { address } = await opened();
    const port = Number(new URL(address).port);
    const second = started({ port });
    await expect(firstValueFrom(second.address$)).rejects.toThrow(/already listening/);
    expect(second.printed[0]).toMatch(/already listening/);
  });
});

describe('the server of devtools', () => {
  /** The status of a request with any headers: `fetch` does not send all of them. */
  const statusOf = (url: URL, headers: Readonly<Record<string, string>>) =>
    new Promise<number | undefined>((resolve, reject) => {
      const sent = httpRequest(url, { headers }, (got) => {
        got.resume();
        resolve(got.statusCode);
      });
      sent.on('error', reject).end();
    });

  const headersOf = (address: string) => ({
    authorization: `Bearer ${address.split('token=')[1] ?? ''}`,
  });

  it('serves the page to anyone on this machine, and the rest only with its token', async () => {
    const { address } = await opened();
    const { origin } = new URL(address);
    const page = await fetch(`${origin}/`);
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(await page.text()).not.toContain('token=');
    for (const authorization of ['', 'Bearer x', `Bearer ${'0'.repeat(32)}`]) {
      const refused = await fetch(`${origin}/api/feed`, { headers: { authorization } });
      expect([refused.status, await refused.json()]).toEqual([
        401,
        { error: 'Open the address that the program printed: it has the token.' },
      ]);
    }
  });

  it.each([
    ['another site', { origin: 'https://evil.example' }, 403],
    ['another port of this machine', { origin: 'http://127.0.0.1:1' }, 403],
    ['a page of another site', { 'sec-fetch-site': 'cross-site' }, 403],
    ['a page of the same site', { 'sec-fetch-site': 'same-site' }, 403],
    ['a name that points to this machine', { host: 'evil.example' }, 421],
  ])('refuses %s', async (_, headers, status) => {
    const { address } = await opened();
    const answered = await statusOf(new URL('/api/search?q=x', address), {
      ...headersOf(address),
      ...headers,
    });
    expect(answered).toBe(status);
  });

  const link = {
    ...{ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' },
    'sec-fetch-dest': 'document',
  };
  it.each([
    ['the page', '/', {}, 200],
    ['the page in a frame', '/', { 'sec-fetch-dest': 'iframe' }, 403],
    ['the page, read by a script', '/', { 'sec-fetch-mode': 'no-cors' }, 403],
    ['a request', '/api/search?q=x', {}, 403],
  ])('a link of another site to %s', async (_, path, more, status) => {
    const { address } = await opened();
    expect(await statusOf(new URL(path, address), { ...link, ...more })).toBe(status);
  });

  it.each([
    ['PUT', 'breakpoints', '[{"type":"messagesAppended"}]', 400],
    ['PUT', 'breakpoints', '{', 400],
    ['POST', 'calls/none/fork', '{"at":"1"}', 404],
    ['POST', 'calls/none/fork', '{}', 400],
    ['POST', 'calls/none/fork', '{"at":"1","edits":{"1":2}}', 400],
    ['POST', 'calls/%00/interrupt', '{}', 409],
    ['POST', 'calls/%E0%A4/interrupt', '{}', 400],
    ['POST', 'holds/__proto__', '{"action":"continue"}', 404],
    ['POST', 'holds/x', '{"action":"jump"}', 400],
    ['GET', 'calls/../../etc/passwd', undefined, 404],
    ['DELETE', 'feed', undefined, 404],
    ['PUT', 'breakpoints', ' '.repeat(9_000_000), 413],
  ])('%s %s %s is %d', async (method, path, body, status) => {
    const { address } = await opened();
    const { origin } = new URL(address);
    const init = { method, headers: headersOf(address), ...(body === undefined ? {} : { body }) };
    const answer = await fetch(`${origin}/api/${path}`, init);
    expect(answer.status).toBe(status);
  });
});

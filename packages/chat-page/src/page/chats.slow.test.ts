import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { createAgent } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import { filter, firstValueFrom, lastValueFrom, of, ReplaySubject, Subject } from 'rxjs';
import { type Chats, chats$, type ChatsCommand } from './chats.js';
import { closeAll, networkTo, pageOf } from './client.test-support.js';

const { fetch } = globalThis;
afterEach(closeAll);
afterAll(() => {
  globalThis.fetch = fetch;
});

/** Lets the event loop turn once. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Conversations with these questions, oldest first. */
const conversations = async (questions: readonly string[]) => {
  const model = scriptedModel(...questions.map((_, at) => [text(`Answer ${at + 1}.`)]));
  const network = networkTo(createAgent({ name: 'helper', model }));
  for (const [at, question] of questions.entries()) await pageOf(`c${at}`).ask(question);
  return network;
};

/** The list of a page. */
const listOf = () => {
  const command$ = new Subject<ChatsCommand>();
  const state$ = new ReplaySubject<Chats>(1);
  let changes = 0;
  const { server } = pageOf('none');
  const changed = () => (changes += 1);
  const options = { server, pause$: of(undefined), changed };
  chats$(options, command$).subscribe(state$);
  const until = (isIt: (state: Chats) => boolean) => firstValueFrom(state$.pipe(filter(isIt)));
  return {
    server,
    until,
    changes: () => changes,
    send: (command: ChatsCommand) => {
      command$.next(command);
    },
    loaded: () => until(({ isLoading }) => !isLoading),
  };
};

const titlesOf = ({ chats }: Chats) => chats.map(({ title }) => title);

describe('the list of conversations', () => {
  it('comes from the server, newest first', async () => {
    await conversations(['First?', 'Second?']);
    const state = await listOf().loaded();
    expect(titlesOf(state)).toEqual(['Second?', 'First?']);
    expect(state.chats.map(({ id }) => id)).toEqual(['c1', 'c0']);
    for (const { updatedAt } of state.chats) expect(Date.now() - updatedAt).toBeLessThan(60_000);
  });

  it('has more than one request brings', async () => {
    await conversations(Array.from({ length: 52 }, (_, at) => `Question ${at}?`));
    const list = listOf();
    const first = await list.loaded();
    expect([first.chats.length, first.next === undefined]).toEqual([50, false]);
    list.send({ type: 'more' });
    const all = await list.until(({ chats }) => chats.length > 50);
    expect([all.chats.length, all.next]).toEqual([52, undefined]);
    expect(new Set(all.chats.map(({ id }) => id)).size).toBe(52);
    // Loading it again keeps what is shown.
    list.send({ type: 'load' });
    expect((await list.until((state) => state !== all)).chats).toHaveLength(52);
  });

  it('is searched by titles and messages', async () => {
    await conversations(['Fjords?', 'Glaciers?']);
    const list = listOf();
    await list.loaded();
    const found = async (search: string) => {
      list.send({ type: 'search', text: search });
      return titlesOf(await list.until((state) => state.search === search && !state.isLoading));
    };
    expect(await found('fJORD')).toEqual(['Fjords?']);
    expect(await found('answer 2')).toEqual(['Glaciers?']);
    expect(await found('volcano')).toEqual([]);
    expect(await found('')).toHaveLength(2);
  });

  it('is renamed in every tab', async () => {
    await conversations(['First?']);
    const list = listOf();
    await list.loaded();
    list.send({ type: 'rename', id: 'c0', title: 'My chat' });
    expect(titlesOf(await list.until(({ chats }) => chats[0]?.title !== 'First?'))).toEqual([
      'My chat',
    ]);
    while (list.changes() === 0) await turn();
    expect(titlesOf(await listOf().loaded())).toEqual(['My chat']);
    expect((await pageOf('c0').ready()).title).toBe('My chat');
  });

  it('loses a conversation that is deleted, for good', async () => {
    await conversations(['First?', 'Second?']);
    const list = listOf();
    await list.loaded();
    list.send({ type: 'delete', id: 'c0' });
    expect(titlesOf(await list.until(({ chats }) => chats.length === 1))).toEqual(['Second?']);
    await lastValueFrom(list.server.delete$('c0'), { defaultValue: undefined });
    expect(titlesOf(await listOf().loaded())).toEqual(['Second?']);
    expect((await pageOf('c0').ready()).messages).toEqual([]);
  });

  it('shows again what the server did not change', async () => {
    const network = await conversations(['First?']);
    const list = listOf();
    await list.loaded();
    network.isDown = 'proxy';
    list.send({ type: 'delete', id: 'c0' });
    const failed = await list.until(({ problem }) => problem !== undefined);
    expect([failed.problem, list.changes()]).toEqual(['The server cannot be reached.', 0]);
    network.isDown = false;
    list.send({ type: 'load' });
    const state = await list.until(({ chats }) => chats.length > 0);
    expect([titlesOf(state), state.problem]).toEqual([['First?'], undefined]);
  });
});

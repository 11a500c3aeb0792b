import { expect } from '@jest/globals';
import { type Entry, type Message, noUsage } from 'millrace';
import {
  appendedState,
  searchTextOf,
  type SessionChange,
  type SessionState,
  type SessionStore,
} from 'millrace/sessions';
import { pathTo } from 'millrace/values';
import fc from 'fast-check';
import { lastValueFrom } from 'rxjs';

const messageOf = (id: string): Message => ({
  id,
  role: 'user',
  content: [{ type: 'text', text: `Text ${id}\u0000\ud800.` }],
});

type Rest = SessionChange['rest'];

const restOf = (at: number): Rest => ({
  version: 1,
  ...(at % 3 > 0 && { title: `Title ${at}` }),
  groups: { web: at % 2 === 0 },
  approvals: [],
  usage: { ...noUsage, inputTokens: at },
  interrupted: at % 2 === 0,
});

/** The message that a number stands for, or the beginning. */
const placeIn = (ids: readonly string[], at: number): string | null =>
  ids[at % (ids.length + 1)] ?? null;

const step = fc.record({
  type: fc.constantFrom('append', 'append', 'append', 'save', 'remove'),
  /** Where each message is added, and which one becomes the head. */
  places: fc.array(fc.nat(30), { maxLength: 4 }),
  head: fc.nat(30),
});

/** Two stores over the same sessions load and find what was saved and appended, as the pure function adds it. */
export const checkAppended = async (
  one: Required<SessionStore>,
  other: Required<SessionStore>,
): Promise<void> => {
  let run = 0;
  const check = fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
    const id = `s${(run += 1)}/`;
    let state: SessionState | undefined;
    let version: number | undefined;
    const versions: number[] = [];
    for (const [at, { type, places, head }] of steps.entries()) {
      const ids = [
        ...(state?.messages ?? []),
        ...(state?.branches ?? []).map((it) => it.message),
      ].map((it) => it.id);
      const entries = places.map((place, index): Entry => {
        const message = messageOf(`${at}/${index}`);
        return {
          message,
          after: placeIn([...ids, ...places.slice(0, index).map((_, of) => `${at}/${of}`)], place),
        };
      });
      const all = [...ids, ...entries.map(({ message }) => message.id)];
      const change = {
        entries,
        head: all.length === 0 ? null : (all[head % all.length] ?? null),
        rest: restOf(at),
      };
      if (type === 'remove') {
        await lastValueFrom(other.remove$(id), { defaultValue: undefined });
        [state, version] = [undefined, undefined];
      } else if (type === 'save' || state === undefined || version === undefined) {
        // A whole state replaces what was appended.
        const messages = pathTo({ entries, head: entries.at(-1)?.message.id ?? null });
        state = { ...restOf(at), messages };
        version = await lastValueFrom(one.save$(id, state, version));
        versions.push(version);
      } else {
        state = appendedState(state, change);
        const appended = other.append$(id, change, version);
        const stale = lastValueFrom(one.append$(id, change, version + 0.5));
        await expect(stale).rejects.toMatchObject({ code: 'conflict' });
        version = await lastValueFrom(appended);
        versions.push(version);
      }
      for (const sessions of [one, other]) {
        const stored = await lastValueFrom(sessions.load$(id));
        expect(stored).toEqual(state && { version, state });
        for (const search of ['text 1/0', 'TITLE', 'Text 2/1\u0000\ud800.', `Title ${at}Text`]) {
          const found = await lastValueFrom(sessions.find$({ prefix: id, search }));
          const texts = state === undefined ? '' : searchTextOf(state);
          const wanted = searchTextOf({ title: search });
          expect([search, found.length]).toEqual([search, texts.includes(wanted) ? 1 : 0]);
          expect(found.map(({ title }) => title)).toEqual(found.map(() => state?.title));
        }
      }
    }
    expect(new Set(versions).size).toBe(versions.length);
  });
  await fc.assert(check, { numRuns: 60 });
};

/** A store appends to no session that another one has saved or removed. */
export const checkRefusedAppends = async (sessions: Required<SessionStore>): Promise<void> => {
  const change = {
    entries: [{ message: messageOf('b'), after: null }],
    head: 'b',
    rest: restOf(1),
  };
  await expect(lastValueFrom(sessions.append$('s', change, 1))).rejects.toMatchObject({
    code: 'conflict',
  });
  const state = { ...restOf(0), messages: [messageOf('a')] };
  const first = await lastValueFrom(sessions.save$('s', state, undefined));
  await lastValueFrom(sessions.append$('s', change, first));
  await expect(lastValueFrom(sessions.append$('s', change, first))).rejects.toMatchObject({
    code: 'conflict',
  });
  await expect(lastValueFrom(sessions.save$('s', state, first))).rejects.toMatchObject({
    code: 'conflict',
  });
  await lastValueFrom(sessions.remove$('s'), { defaultValue: undefined });
  await expect(lastValueFrom(sessions.append$('s', change, first + 1))).rejects.toMatchObject({
    code: 'conflict',
  });
};

import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createAgent, textOf, tool } from '@millrace/core';
import { scriptedModel, text, toolCall } from '@millrace/core/testing';
import { firstValueFrom, lastValueFrom, toArray } from 'rxjs';
import { type Engines, startEngines } from './engine.test-support.js';

jest.setTimeout(60_000);

let engines: Engines;
beforeAll(async () => {
  engines = await startEngines();
}, 120_000);
afterEach(() => engines.close());
afterAll(() => engines.stop());

const search = tool({ name: 'search', description: 'Searches.', run: () => 'Two mills.' });

describe('openDbos', () => {
  it('runs a call, and tells its events and its reply', async () => {
    const engine = engines.open();
    const model = scriptedModel([toolCall('search')], [text('Two.')]);
    const agent = createAgent({ name: 'clerk', model, tools: [search] });
    engines.keep(engine.work$([agent]));
    const callId = await firstValueFrom(engine.start$(agent, 'How many mills?'));
    const events = await lastValueFrom(engine.attach$(callId).pipe(toArray()));
    expect(events.at(-1)?.type).toBe('postCall');
    expect(textOf(await firstValueFrom(engine.reply$(callId)))).toBe('Two.');
  });
});

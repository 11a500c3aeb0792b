import { describe, expect, it } from '@jest/globals';
import { createAgent } from 'millrace';
import { demoModel } from '@millrace/demo-model';
import { marblePicture, present } from '@millrace/cli';
import { firstValueFrom, toArray } from 'rxjs';

describe('@millrace/cli', () => {
  it('presents and draws calls, as the README says', async () => {
    const agent = createAgent({ model: demoModel() });
    const printed: string[] = [];
    agent
      .stream$('Hello')
      .pipe(present())
      .subscribe((text) => printed.push(text));
    expect(printed.join('')).toMatch(/\n\nHello\. [^]*\nanswered in .*\n\nreasoning /);

    const events = await firstValueFrom(agent.stream$('Hello').pipe(toArray()));
    expect(marblePicture(events, { width: 60 })).toMatch(/^reasoning .*t.*\|/);
  });
});

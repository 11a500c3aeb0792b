import { describe, expect, it } from '@jest/globals';
import {
  type Validator,
  createAgent,
  MillraceError,
  requireApproval,
  suspend,
  tool,
} from 'millrace';
import { retrieve } from 'millrace/retrieval';
import { jsonSchema } from 'millrace/schema';
import { agentTool } from 'millrace/teams';
import { finish, scriptedModel, text, thinking, toolCall } from 'millrace/testing';
import { approvalQueue } from '@millrace/server/approvals';
import { of, Subject } from 'rxjs';
import { agentOf, held, violations, visits, type Visitor } from './browser.test-support.js';

const { open } = visits();

const markdown = `## Fjords

A **fjord** is a long, narrow inlet, *carved by a glacier*. See [Wikipedia](https://en.wikipedia.org/wiki/Fjord).

1. The ice carves a valley.
2. The sea floods it:
   - first the mouth,
   - then all of it.

| Fjord | Length |
| ----- | -----: |
| Sognefjord | 205 km |
| Hardangerfjord | 179 km |

\`\`\`ts
const depth = fjords.map(({ depth }) => depth).reduce(max, 0);
\`\`\`

> Quoted, with \`code\`.

Its depth[^1] is \\(d = \\sqrt{\\frac{h}{2}}\\):

$$
d = \\begin{pmatrix} a & b \\end{pmatrix} \\cdot \\sum_{i=1}^n h_i
$$

[^1]: Below the *sea*.
`;

describe('an answer', () => {
  it('is Markdown, without any HTML', async () => {
    const hostile = `${markdown}\n<img src=x onerror="window.hit=1"> <script>window.hit=1</script> [x](javascript:window.hit=1)`;
    const { ask, isAnswered, page, screenshot } = await open(agentOf([[text(hostile)]]));
    await ask('What is a fjord?');
    await isAnswered();
    const answer = page.locator('.answer');
    await answer.getByRole('table').waitFor();
    expect(
      await answer.locator('h3, ol:not(.footnotes) > li, ul > li, pre, blockquote').count(),
    ).toBe(7);
    expect(await answer.locator('img, script, a[href^="javascript:"]').count()).toBe(0);
    expect(await answer.innerText()).toContain('<script>window.hit=1</script>');
    const alignOf = (name: string) =>
      answer
        .locator(`:is(th, td):text-is('${name}')`)
        .evaluate((cell) => getComputedStyle(cell).textAlign);
    expect(await Promise.all(['Fjord', '205 km', 'Length'].map(alignOf))).toEqual([
      ...['left', 'right', 'right'],
    ]);
    const link = answer.getByRole('link', { name: 'Wikipedia' });
    expect(await link.getAttribute('rel')).toContain('noopener');
    expect(await page.evaluate('window.hit')).toBeUndefined();
    await answer.locator('math msqrt mfrac').waitFor();
    await answer.locator('math[display=block] mtable').waitFor();
    expect(await answer.locator('.formula > code').count()).toBe(0);
    expect(await answer.locator('pre .keyword').allInnerTexts()).toEqual(['const']);
    expect(await answer.locator('pre').innerText()).toBe(
      'const depth = fjords.map(({ depth }) => depth).reduce(max, 0);',
    );
    await answer.getByRole('button', { name: 'Footnote 1' }).click();
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Below the sea.');
    await screenshot('answer');
  });

  it('draws what is open, and colors code and formulas once they are complete', async () => {
    const { answer, say, end } = held();
    const { ask, page, isAnswered } = await open(agentOf([answer]));
    await ask('?');
    const shown = page.locator('.answer .markdown');
    say('A **bo');
    await shown.locator('strong').getByText('bo').waitFor();
    say('ld** [link](https://x.o');
    await shown.getByText('A bold link', { exact: true }).waitFor();
    say('rg)\n\n| a |');
    await shown.locator('th').getByText('a').waitFor();
    expect(await shown.getByRole('link').getAttribute('href')).toBe('https://x.org/');
    say('\n|---|\n\n```js\nconst a = ');
    await shown.locator('pre').getByText('const a =').waitFor();
    expect(await shown.locator('pre span span').count()).toBe(0);
    say("'b';\n```\n\n$\\frac{1}{2}$, $\\nothing{$ and <b>\n\n- [x] done");
    await shown.locator('pre .string').getByText('b').waitFor();
    await shown.locator('math mfrac').waitFor();
    end();
    await isAnswered();
    // What is no TeX stays as it is.
    expect(await shown.locator('.formula > code').allInnerTexts()).toEqual(['\\nothing{']);
    expect(await shown.locator('b').count()).toBe(0);
    expect(await shown.getByRole('checkbox', { name: 'Done' }).count()).toBe(1);
  });

  it('draws formulas that no one would write, within their place', async () => {
    const hostile = [
      ...['\\rule{9999em}{9999em}', '\\kern{-9999em}x', '\\def\\a{\\a\\a}\\a', '{'.repeat(4_000)],
      ...['\\href{javascript:window.hit=1}{x}', '\\includegraphics{https://x.org/a.png}'],
    ];
    const { ask, page, sees, isAnswered } = await open(
      agentOf([[text(`${hostile.map((tex) => `$$${tex}$$`).join('\n\n')}\n\n$a$ The end.`)]]),
    );
    const requested: string[] = [];
    page.on('request', (request) => requested.push(request.url()));
    await ask('?');
    await isAnswered();
    await page.locator('math mi').last().waitFor();
    await sees('The end.');
    expect(await page.locator('.answer :is(a, img, [href], [src])').count()).toBe(0);
    expect(requested.filter((url) => url.includes('x.org'))).toEqual([]);
    const width = await page.locator('.messages').evaluate((it) => it.scrollWidth - it.clientWidth);
    expect(width).toBe(0);
  });

  it('shows thinking, closed until it is opened', async () => {
    const { ask, isAnswered, page, sees } = await open(
      agentOf([[thinking('Hm, cold.'), text('Oslo.')]]),
    );
    await ask('?');
    await isAnswered();
    expect(await page.getByText('Hm, cold.').count()).toBe(0);
    await page.getByText('Thoughts').click();
    await sees('Hm, cold.');
  });

  it('streams thousands of pieces, and renders once a frame', async () => {
    const { answer, say, end } = held();
    const { ask, page, sees, answers, isAnswered } = await open(agentOf([answer]));
    await ask('?');
    await page.evaluate(() => {
      const counted = window as unknown as { changes: number };
      counted.changes = 0;
      new MutationObserver(() => (counted.changes += 1)).observe(document.body, {
        ...{ subtree: true, childList: true, characterData: true },
      });
    });
    for (let at = 0; at < 5_000; at += 1) say(`word${at} `);
    say('the end.');
    end();
    await sees('the end.');
    await isAnswered();
    expect((await answers())[0]?.split(' ')).toHaveLength(5_002);
    const changes = await page.evaluate(() => (window as unknown as { changes: number }).changes);
    expect(changes).toBeLessThan(1_000);
  });

  it('shows its sources', async () => {
    const retriever = {
      retrieve$: () => of([{ source: 'https://x.org/a', title: 'The source', text: 'Oslo.' }]),
    };
    const agent = createAgent({
      ...{ name: 'Helper', model: scriptedModel([text('Oslo [1].')]) },
      use: [retrieve(retriever)],
    });
    const { ask, isAnswered, page } = await open(agent);
    await ask('?');
    await isAnswered();
    await page.getByText('Sources (1)').click();
    const link = page.getByRole('link', { name: 'The source' });
    expect(await link.getAttribute('href')).toBe('https://x.org/a');
  });

  it('shows an error, and tries again', async () => {
    const broken = () => {
      throw new MillraceError('refused', 'secret', { retryable: false });
    };
    const { ask, page, answers, screenshot, isAnswered } = await open(
      agentOf([broken, [text('Better.')]]),
    );
    await ask('?');
    const alert = page.getByRole('alert');
    await alert.waitFor();
    expect(await alert.innerText()).not.toContain('secret');
    await screenshot('error');
    await alert.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('Better.').first().waitFor();
    await isAnswered();
    expect(await answers()).toEqual(['Better.']);
    expect(await alert.count()).toBe(0);
  });

  it('stops with Esc, and keeps its text', async () => {
    const { answer, say } = held();
    const { ask, page, sees, answers, isAnswered } = await open(agentOf([answer]));
    await ask('?');
    say('Half of it');
    await sees('Half of it');
    await page.keyboard.press('Escape');
    await isAnswered();
    await sees('Stopped.');
    expect(await answers()).toEqual(['Half of it']);
  });

  it('is generated again, and its question is edited', async () => {
    const { ask, page, sees, answers, isAnswered } = await open(
      agentOf([[text('One.')], [text('Two.')], [text('Three.')]]),
    );
    await ask('Number?');
    await isAnswered();
    await page.getByRole('button', { name: 'Regenerate' }).click();
    await sees('Two.');
    await isAnswered();
    expect(await answers()).toEqual(['Two.']);
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByRole('textbox', { name: 'Edit your message' }).fill('Another number?');
    await page.keyboard.press('Enter');
    await sees('Three.');
    await isAnswered();
    expect(await answers()).toEqual(['Three.']);
    expect(await page.locator('.question').allInnerTexts()).toEqual([
      expect.stringContaining('Another number?'),
    ]);
  });

  it('takes a picture along', async () => {
    const model = scriptedModel([text('A dot.')]);
    const { ask, page, isAnswered, screenshot } = await open(
      createAgent({ name: 'Helper', model }),
    );
    const buffer = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
      'base64',
    );
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'dot.png', mimeType: 'image/png', buffer });
    await page.getByRole('button', { name: 'Remove dot.png' }).waitFor();
    await ask('What is it?');
    await isAnswered();
    await page.locator('.question img').waitFor();
    expect(model.requests[0]?.messages.at(-1)?.content).toContainEqual({
      type: 'image',
      source: { kind: 'base64', mediaType: 'image/png', data: buffer.toString('base64') },
    });
    await page.reload();
    await page.locator('.question img').waitFor();
    await screenshot('picture');
  });
});

const schema = jsonSchema({
  type: 'object',
  properties: { amount: { type: 'number', maximum: 100 } },
  required: ['amount'],
});

describe('a tool', () => {
  it('shows its arguments, progress and result', async () => {
    const progress$ = new Subject<unknown>();
    const upload = tool({
      name: 'upload',
      description: 'Uploads.',
      input: jsonSchema({ type: 'object', properties: { file: { type: 'string' } } }),
      run: () => progress$,
    });
    const { ask, page, sees, isAnswered, screenshot } = await open(
      agentOf([[toolCall('upload', { file: 'a.txt' }), finish()], [text('Uploaded.')]], [upload]),
    );
    await ask('Upload!');
    const card = page.getByRole('group', { name: 'Tool upload' });
    await card.getByText('Running').waitFor();
    progress$.next({ percent: 40 });
    await card.getByText('40', { exact: true }).waitFor();
    await sees('a.txt');
    await screenshot('tool');
    progress$.next({ percent: 100 });
    progress$.complete();
    await card.getByText('Done').waitFor();
    await isAnswered();
  });

  it('shows its failure', async () => {
    const broken = tool({
      name: 'broken',
      description: 'Fails.',
      run: (): string => {
        throw new Error('secret');
      },
    });
    const { ask, page, isAnswered } = await open(
      agentOf([[toolCall('broken'), finish()], [text('It failed.')]], [broken]),
    );
    await ask('?');
    await isAnswered();
    const card = page.getByRole('group', { name: 'Tool broken' });
    expect(await card.innerText()).toContain('Failed');
    expect(await card.innerText()).toContain('The tool failed.');
  });

  it('shows the sub-agent that it runs', async () => {
    const model = scriptedModel([text('Bergen is rainy.')]);
    const weather = createAgent({ name: 'weather', model });
    const ask = agentTool(weather, { description: 'Knows the weather.' });
    const visitor = await open(
      agentOf([[toolCall('weather', { user_prompt: '?' }), finish()], [text('Rain.')]], [ask]),
    );
    await visitor.ask('?');
    await visitor.isAnswered();
    await visitor.page.getByText('Agent').click();
    await visitor.sees('Bergen is rainy.');
    await visitor.screenshot('agent');
  });

  const paying = (
    edits = true,
    input: Validator<{ readonly amount?: unknown }> = schema,
  ): Promise<Visitor> => {
    const approvals = approvalQueue({ key: 'a key of thirty-two bytes or more', edits });
    const pay = requireApproval(
      tool({
        ...{ name: 'pay', description: 'Pays.', input },
        run: ({ amount }: { amount?: unknown }) => `Paid ${String(amount)}.`,
      }),
      approvals.approve,
    );
    const answers = [[toolCall('pay', { amount: 5 }), finish()], [text('That is all.')]];
    return open(agentOf(answers, [pay]), { approvals });
  };

  it('runs when the user approves', async () => {
    const { ask, page, sees, isAnswered, screenshot } = await paying();
    await ask('Pay!');
    const form = page.getByRole('form', { name: 'Approval of pay' });
    await form.getByRole('button', { name: 'Approve' }).waitFor();
    await screenshot('approval');
    // Disabled buttons cannot be reached, and could not give their reason.
    const edit = page.locator('.question').getByRole('button', { name: 'Edit' });
    expect(await edit.getAttribute('aria-disabled')).toBe('true');
    expect(await edit.getAttribute('title')).toBe('The tool Pay needs your approval first.');
    await edit.focus();
    await page.keyboard.press('Enter');
    expect(await page.getByRole('textbox', { name: 'Edit your message' }).count()).toBe(0);
    await form.getByRole('button', { name: 'Approve' }).click();
    await sees('That is all.');
    await isAnswered();
    expect(await edit.getAttribute('aria-disabled')).toBe('false');
    expect(await form.count()).toBe(0);
    expect(await page.getByRole('group', { name: 'Tool pay' }).innerText()).toContain('Done');
  });

  it('offers no edit that the server would refuse', async () => {
    const { ask, page } = await paying(false);
    await ask('Pay!');
    const form = page.getByRole('form', { name: 'Approval of pay' });
    await form.getByRole('button', { name: 'Approve' }).waitFor();
    expect(await form.getByRole('button', { name: 'Edit' }).count()).toBe(0);
  });

  it('does not run when the user denies, with a reason', async () => {
    const { ask, page, isAnswered } = await paying();
    await ask('Pay!');
    const open = page.getByRole('button', { name: 'Deny …' });
    await open.press('Enter');
    await page.getByRole('button', { name: 'Back' }).press('Enter');
    // The focus never leaves the form.
    await page.keyboard.press('Tab');
    await page.keyboard.press('Shift+Tab');
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Approve');
    await open.press('Enter');
    await page.keyboard.type('Too expensive.');
    expect(await page.getByLabel('Reason').inputValue()).toBe('Too expensive.');
    await page.keyboard.press('Enter');
    await isAnswered();
    expect(await page.getByRole('group', { name: 'Tool pay' }).innerText()).toContain('Denied');
  });

  it('runs with edited arguments, once they are valid', async () => {
    const { ask, page, sees, isAnswered, screens } = await paying();
    await ask('Pay!');
    const form = page.getByRole('form', { name: 'Approval of pay' });
    await form.getByRole('button', { name: 'Edit' }).click();
    const field = form.getByRole('textbox', { name: 'Amount' });
    expect(await field.inputValue()).toBe('5');
    const submit = form.getByRole('button', { name: 'Approve edited' });
    await field.fill('500');
    await submit.click();
    await form.getByText('Up to 100.').waitFor();
    expect(await screens('approval-edit')).toEqual([]);
    await field.fill('7');
    await submit.click();
    await isAnswered();
    await page.getByRole('group', { name: 'Tool pay' }).locator('summary').click();
    await sees('Paid 7.');
  });

  it('without a schema that a form can show runs with arguments that are edited as JSON', async () => {
    const any = jsonSchema({
      type: 'object',
      additionalProperties: { type: 'number', maximum: 100 },
    });
    const { ask, page, sees, isAnswered } = await paying(true, any);
    await ask('Pay!');
    const form = page.getByRole('form', { name: 'Approval of pay' });
    await form.getByRole('button', { name: 'Edit' }).click();
    const field = form.getByRole('textbox');
    const submit = form.getByRole('button', { name: 'Approve edited' });
    await field.fill('{ "amount": ');
    await submit.click();
    await form.getByText('This is not valid JSON.').waitFor();
    await field.fill('{ "amount": 500 }');
    await submit.click();
    await form
      .getByRole('alert')
      .getByText(/arguments|valid|amount/iu)
      .waitFor();
    await field.fill('{ "amount": 7 }');
    await submit.click();
    await isAnswered();
    await page.getByRole('group', { name: 'Tool pay' }).locator('summary').click();
    await sees('Paid 7.');
  });

  it('that is suspended gets its result from the user, also after a reload', async () => {
    const where = tool({
      name: 'where',
      description: 'Asks.',
      run: () => suspend({ want: 'city' }),
    });
    const { ask, page, sees, answers, isAnswered, screenshot } = await open(
      agentOf([[toolCall('where'), finish()], [text('You are in Oslo.')]], [where]),
    );
    await ask('Where am I?');
    const form = page.getByRole('form', { name: 'Question of where' });
    await form.waitFor();
    const message = page.locator('#message');
    await page.reload();
    await form.waitFor();
    expect(await message.isEnabled()).toBe(true);
    await form.getByText('If you send a message instead, this tool call is cancelled.').waitFor();
    expect(await violations(page)).toEqual([]);
    await form.getByRole('button', { name: 'Enter JSON' }).click();
    await form.getByRole('textbox').fill('Oslo');
    await form.getByRole('button', { name: 'Send answer' }).click();
    await form.getByText('This is not valid JSON.').waitFor();
    await screenshot('suspended');
    await form.getByRole('textbox').fill('{ "city": "Oslo" }');
    await form.getByRole('button', { name: 'Send answer' }).click();
    await sees('You are in Oslo.');
    await isAnswered();
    expect(await answers()).toEqual(['You are in Oslo.']);
    expect(await form.count()).toBe(0);
    expect(await message.evaluate((it) => it === document.activeElement)).toBe(true);
  });

  it('gets a message of the user after it', async () => {
    const done$ = new Subject<string>();
    const wait = tool({ name: 'wait', description: 'Waits.', run: () => done$ });
    const { ask, page, sees, isAnswered } = await open(
      agentOf([[toolCall('wait'), finish()], [text('Oui.')]], [wait]),
    );
    await ask('Yes?');
    await page.getByRole('group', { name: 'Tool wait' }).getByText('Running').waitFor();
    const sent = page.waitForRequest(/steer$/u);
    await ask('In French.');
    await sent;
    await sees('Waits for the next step of the answer');
    // The request has reached the server once another one is answered.
    await page.evaluate(() => fetch('/api/chat/other'));
    done$.next('Done.');
    done$.complete();
    await sees('Oui.');
    await isAnswered();
    await page.getByRole('note', { name: 'You added' }).waitFor();
    expect(await page.locator('.waiting').count()).toBe(0);
  });
});

describe('a message', () => {
  it('that is sent without a connection stays, over a reload, and is sent once', async () => {
    const model = scriptedModel([text('One.')], [text('Two.')]);
    const visitor = await open(createAgent({ name: 'Helper', model }));
    const { ask, page, sees, isAnswered, answers, screenshot } = visitor;
    await ask('First?');
    await isAnswered();
    await page.context().setOffline(true);
    await ask('Second?');
    await sees('The server has not confirmed this message.');
    const again = page.getByRole('button', { name: 'Try again' });
    await again.click();
    // The list of chats may say the same, when it was loading.
    await page.locator('.problem', { hasText: 'The server cannot be reached.' }).waitFor();
    await sees('Second?');
    await page.getByText('Reconnecting…').waitFor({ state: 'detached' });
    expect(await violations(page)).toEqual([]);
    await screenshot('unsent');
    await page.context().setOffline(false);
    await page.reload();
    await sees('Second?');
    await again.click();
    await sees('Two.');
    await isAnswered();
    expect(await answers()).toEqual(['One.', 'Two.']);
    expect(await page.locator('.question .bubble').allInnerTexts()).toEqual(['First?', 'Second?']);
    expect([await again.count(), model.requests.length]).toEqual([0, 2]);
    await page.reload();
    await sees('Two.');
    expect(await page.locator('.question .bubble').allInnerTexts()).toEqual(['First?', 'Second?']);
  });

  it('can be discarded instead', async () => {
    const { ask, page, sees } = await open(agentOf([]));
    await page.context().setOffline(true);
    await ask('Never mind?');
    await sees('Never mind?');
    await page.getByRole('button', { name: 'Discard' }).click();
    await page.locator('.question').waitFor({ state: 'detached' });
    await page.context().setOffline(false);
    // Once it is online, the page also tries by itself.
    const again = page.getByRole('button', { name: 'Try again' });
    await again.click({ timeout: 3_000 }).catch(() => undefined);
    await page.locator('.messages').getByRole('alert').waitFor({ state: 'detached' });
    expect(await page.locator('.question').count()).toBe(0);
  });
});

describe('everyone', () => {
  it.each(['light', 'dark'] as const)('can use the page: %s', async (colorScheme) => {
    const approvals = approvalQueue({ key: 'a key of thirty-two bytes or more', edits: true });
    const pay = requireApproval(
      tool({ name: 'pay', description: 'Pays.', input: schema, run: () => 'Paid.' }),
      approvals.approve,
    );
    const visitor = await open(
      agentOf(
        [
          [thinking('Hm.'), text(markdown)],
          [text('I pay.'), toolCall('pay', { amount: 5 }), finish()],
        ],
        [pay],
      ),
      { approvals },
      { colorScheme },
    );
    const { ask, isAnswered, page, screenshot } = visitor;
    expect(await violations(visitor.page)).toEqual([]);
    await screenshot(`welcome-${colorScheme}`);
    await ask('What is a fjord?');
    await isAnswered();
    await page.getByText('Thoughts').click();
    await ask('Pay!');
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    expect(await violations(visitor.page)).toEqual([]);
    await screenshot(`page-${colorScheme}`);
  });

  it('chooses the theme, and keeps it', async () => {
    const { page } = await open(agentOf([]), {}, { colorScheme: 'light' });
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    await page.getByRole('button', { name: 'Use the dark theme' }).click();
    const dark = await background();
    expect(dark).not.toBe(light);
    await page.reload();
    await page.getByRole('button', { name: 'Use the light theme' }).waitFor();
    expect(await background()).toBe(dark);
  });

  it('can use the keyboard alone', async () => {
    const { page, sees, isAnswered, answers } = await open(
      agentOf([[text('One.')], [text('Two.')], [text('Three.')]]),
    );
    // The field has the focus from the start, and keeps it.
    await page.keyboard.type('First line');
    await page.keyboard.press('Shift+Enter');
    await page.keyboard.type('second line');
    await page.keyboard.press('Enter');
    await sees('One.');
    await isAnswered();
    expect(await page.locator('.question p').innerText()).toBe('First line\nsecond line');
    await page.keyboard.type('Again?');
    await page.keyboard.press('Enter');
    await sees('Two.');
    await isAnswered();
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? '');
    for (let presses = 0; (await focused()) !== 'Regenerate' && presses < 40; presses += 1) {
      await page.keyboard.press('Shift+Tab');
    }
    await page.keyboard.press('Enter');
    await sees('Three.');
    await isAnswered();
    expect(await answers()).toEqual(['One.', 'Three.']);
  });

  it('hears the end of an answer, politely', async () => {
    const { ask, page, isAnswered } = await open(agentOf([[text('It is *done*.')]]));
    await ask('?');
    await isAnswered();
    await page.locator('[aria-live=polite]').getByText('It is *done*.').waitFor();
  });

  it('can scroll a long conversation, within the page', async () => {
    const long = 'A fjord is deep. '.repeat(60);
    const { ask, page, isAnswered } = await open(agentOf([[text(long)], [text(long)]]));
    for (const question of ['Is it deep?', 'How deep?']) {
      await ask(question);
      await isAnswered();
    }
    for (const height of [900, 500]) {
      await page.setViewportSize({ width: 390, height });
      expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBe(height);
    }
  });

  it('can use a narrow screen', async () => {
    const { ask, page, isAnswered, screenshot } = await open(
      agentOf([[text(markdown)]]),
      {},
      { viewport: { width: 360, height: 740 } },
    );
    await ask('What is a fjord?');
    await isAnswered();
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(width).toBe(360);
    await screenshot('narrow');
    await page.getByRole('button', { name: 'Conversations' }).click();
    await page.getByRole('link', { name: 'What is a fjord?' }).waitFor();
    await screenshot('narrow-list');
  });
});

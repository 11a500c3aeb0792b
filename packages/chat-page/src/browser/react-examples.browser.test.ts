import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { createAgent, requireApproval, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { finish, type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { agUi } from '@millrace/server/ag-ui';
import { approvalQueue } from '@millrace/server/approvals';
import type { ChatProtocol } from '@millrace/server/chat';
import { build } from 'esbuild';
import { of } from 'rxjs';
import { held, visits } from './browser.test-support.js';

const examples = join(import.meta.dirname, '../../../../examples/react');

/** A page with an example. */
const pageOf = async (name: string): Promise<ChatProtocol> => {
  const { outputFiles } = await build({
    entryPoints: [join(examples, `${name}.tsx`)],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"production"' },
  });
  const file = (path: string, type: string, body: string) => ({
    method: 'GET',
    path,
    answer$: () => of(new Response(body, { headers: { 'content-type': type } })),
  });
  const html =
    '<!doctype html><title>Example</title><div id="page"></div><script type="module" src="/page.js"></script>';
  return () => [
    file('/', 'text/html; charset=utf-8', html),
    file('/page.js', 'text/javascript; charset=utf-8', outputFiles[0]?.text ?? ''),
  ];
};

const pages = new Map<string, ChatProtocol>();
beforeAll(async () => {
  for (const name of ['use-chat', 'ag-ui']) pages.set(name, await pageOf(name));
});

const { open } = visits();

/** Opens an example over an agent that may pay, once it is approved. */
const openExample = (name: string, ...answers: readonly ScriptedAnswer[]) => {
  const approvals = approvalQueue({ key: 'a key of thirty-two bytes or more' });
  const pay = requireApproval(
    tool({
      name: 'pay',
      description: 'Pays.',
      input: jsonSchema({ type: 'object', properties: { amount: { type: 'number' } } }),
      run: () => 'Paid.',
    }),
    approvals.approve,
  );
  const agent = createAgent({ name: 'Helper', model: scriptedModel(...answers), tools: [pay] });
  const page = pages.get(name);
  return open(agent, { approvals, protocols: [agUi(), ...(page === undefined ? [] : [page])] });
};

const paying = [text('I pay.'), toolCall('pay', { amount: 5 }), finish()];

describe.each(['use-chat', 'ag-ui'])('the React example %s', (name) => {
  it('runs a tool that is approved, also after a reload', async () => {
    const { page, ask, sees, screenshot } = await openExample(name, paying, [text('All done.')]);
    await ask('Pay!');
    const approve = page.getByRole('button', { name: 'Approve' });
    await approve.waitFor();
    await page.reload();
    await approve.click();
    await sees('All done.');
    await sees('Paid.');
    expect(await page.locator('.user').count()).toBe(1);
    expect(await page.getByText('I pay.').count()).toBe(1);
    await screenshot(`react-${name}`);
  });

  it('does not run a tool that is denied', async () => {
    const { page, ask, sees } = await openExample(name, paying, [text('As you wish.')]);
    await ask('Pay!');
    await page.getByRole('button', { name: 'Deny' }).click();
    await sees('As you wish.');
    expect(await page.getByText('Paid.').count()).toBe(0);
  });

  it('joins a running answer after a reload', async () => {
    const { answer, say, end } = held();
    const { page, ask, sees } = await openExample(name, answer, [text('Again.')]);
    await ask('A story?');
    say('Once ');
    await sees('Once');
    await page.reload();
    await sees('Once');
    say('upon a time.');
    end();
    await sees('Once upon a time.');
    expect(await page.locator('.assistant').count()).toBe(1);
    await ask('And then?');
    await sees('Again.');
  });

  it('shows an error', async () => {
    const broken = () => {
      throw new Error('secret');
    };
    const { page, ask } = await openExample(name, broken);
    await ask('?');
    await page.getByRole('alert').waitFor();
    expect(await page.locator('body').innerText()).not.toContain('secret');
  });
});

describe('the React example use-chat', () => {
  it('stops an answer, and generates it again', async () => {
    const { answer, say } = held();
    const { page, ask, sees } = await openExample('use-chat', answer, [text('Another.')]);
    await ask('A story?');
    say('Once');
    await sees('Once');
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByRole('button', { name: 'Regenerate' }).click();
    await sees('Another.');
    expect(await page.locator('.assistant').allInnerTexts()).toEqual(['Another.']);
  });
});

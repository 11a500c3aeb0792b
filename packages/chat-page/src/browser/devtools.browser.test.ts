import { expect, it } from '@jest/globals';
import { finish, text } from 'millrace/testing';
import { createDevtools } from '@millrace/devtools';
import { firstValueFrom } from 'rxjs';
import { chatPage } from '../index.js';
import { agentOf, visits } from './browser.test-support.js';

const { open } = visits();

it('an answer links to its call in devtools', async () => {
  const dev = createDevtools({
    ...{ enabled: true, port: 0, forks: true, keepOpen: true },
    print: () => undefined,
  });
  try {
    const devtoolsUrl = await firstValueFrom(dev.address$);
    const answers = [
      [text('One it is.'), finish()],
      [text('Two it is.'), finish()],
    ];
    const agent = dev.inspect(agentOf(answers));
    const { ask, page, isAnswered } = await open(agent, { protocols: [chatPage({ devtoolsUrl })] });
    for (const question of ['One?', 'Two?']) {
      await ask(question);
      await isAnswered();
    }
    // Also of the history, after a reload.
    await page.reload();
    const links = page.getByRole('link', { name: 'Open in devtools' });
    await links.nth(1).waitFor();
    const [popup] = await Promise.all([page.waitForEvent('popup'), links.first().click()]);
    await popup.getByText('One it is.').first().waitFor();
    expect(await popup.getByText('Two it is.').count()).toBe(0);
    expect(await popup.evaluate(() => window.opener)).toBe(null);
  } finally {
    dev.close();
  }
});

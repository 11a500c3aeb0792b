import { describe, expect, it } from '@jest/globals';
import { createAgent, requireApproval, suspend, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { finish, scriptedModel, text, toolCall } from 'millrace/testing';
import { approvalQueue } from '@millrace/server/approvals';
import type { Page } from 'playwright-core';
import { chatPage } from '../index.js';
import { visits } from './browser.test-support.js';

const { open } = visits();

/** The labels that an application brings. German ones are long words, and Chinese ones have no spaces. */
const languages = [
  {
    language: 'German',
    app: 'Rechtsschutzversicherungsgesellschaftsauskunft',
    starters: ['Wie lautet die Überweisungsauftragsbestätigungsnummer?', 'Kündigungsfrist?'],
    footer: 'Antworten können Unwahrscheinlichkeitsbehauptungen enthalten.',
    title: 'Geldüberweisungsauftragsbestätigung',
    field: 'Empfängerkontonummernbezeichnung',
    hint: 'Die zweiundzwanzigstellige Kontonummer des Zahlungsempfängers.',
    option: 'Höchstgeschwindigkeitsüberweisungsverfahren',
    question: 'Welche Überweisungsgeschwindigkeitsstufe soll gelten?',
  },
  {
    language: 'Chinese',
    app: '法律保护保险公司客户服务与信息查询中心综合服务平台助理',
    starters: ['转账确认单的编号是多少以及我应当在哪里查询这个编号？', '终止期限？'],
    footer: '回答可能包含不准确的内容，请在采取行动之前自行核实所有重要的信息。',
    title: '国际转账委托确认与收款人账户核对服务申请表',
    field: '收款人银行账户号码与开户行名称的完整书面描述',
    hint: '收款人的二十二位银行账户号码，包括开户行所在国家的代码。',
    option: '以最快的速度办理并在当日之内完成的国际转账方式',
    question: '这笔转账应当采用哪一种速度等级来办理？',
  },
] as const;

describe('the labels of an application', () => {
  it.each(languages)(
    'in $language fit a phone, on each card',
    async (labels) => {
      const { language, app, starters, footer, title, field, hint, option, question } = labels;
      const properties = {
        account: { type: 'string', title: field, description: hint },
        speed: { oneOf: [{ const: 'fast', title: option }] },
      };
      const input = jsonSchema({ type: 'object', title, properties });
      const approvals = approvalQueue({ key: 'a key of thirty-two bytes or more', edits: true });
      const shared = { description: 'Sends.', input };
      const send = tool({ ...shared, name: 'send', run: () => ({ account: 'Ann' }) });
      const choose = tool({
        ...{ ...shared, name: 'choose' },
        run: () => suspend({ message: question, schema: { type: 'object', properties } }),
      });
      const given = { account: 'Ann', speed: 'fast' };
      const model = scriptedModel(
        [toolCall('send', given, 's'), finish()],
        [toolCall('choose', given, 'c'), finish()],
        [text(question)],
      );
      const tools = [requireApproval(send, approvals.approve), choose];
      const models = [title, option];
      const page$ = chatPage({
        ...{ title: app, starters, footer, models },
        agents: { [title]: '/', [option]: '/other/' },
      });
      const visitor = await open(createAgent({ name: 'Helper', model, tools }), {
        approvals,
        protocols: [page$],
      });
      const { page, ask, isAnswered, screens } = visitor;
      const card = (of: Page) => of.getByRole('group', { name: `Tool ${title}`, exact: true });
      expect(await screens(`labels-${language}-welcome`)).toEqual([]);
      await ask(question);
      const form = page.getByRole('form', { name: `Approval of ${title}` });
      await form.getByText(option).waitFor();
      expect(await screens(`labels-${language}-approval`)).toEqual([]);
      await form.getByRole('button', { name: 'Edit' }).click();
      await form.getByText(hint).waitFor();
      expect(await screens(`labels-${language}-edit`)).toEqual([]);
      await form.getByRole('button', { name: 'Back' }).click();
      await form.getByRole('button', { name: 'Approve' }).click();
      const asked = page.getByRole('form', { name: `Question of ${title}` });
      await asked.getByRole('radio', { name: option }).waitFor();
      expect(await screens(`labels-${language}-question`)).toEqual([]);
      await asked.getByRole('textbox', { name: field }).fill('Ann');
      await asked.getByRole('button', { name: 'Send answer' }).click();
      await isAnswered();
      for (const fold of await card(page).locator('summary').all()) await fold.click();
      expect(await screens(`labels-${language}-done`)).toEqual([]);
    },
    300_000,
  );
});

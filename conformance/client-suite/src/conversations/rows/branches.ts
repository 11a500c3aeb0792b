import { equal, ok } from 'node:assert/strict';
import { same } from '../../column.js';
import { viewOf, viewsOf } from '../views.js';
import { type ConversationRows, shows, twoAnswers } from './scene.js';

/** Branches that one tab makes. */
export const branchRows: ConversationRows = {
  branchSwitch: {
    name: 'branch switch, then a question',
    about: 'The client shows the earlier answer again. The model reads that one.',
    play: async ({ open }) => {
      const tab = await twoAnswers(open);
      await tab.regenerate();
      shows(tab, 'Hi', 'A0', '1?', 'A2');
      await tab.show('A1');
      shows(tab, 'Hi', 'A0', '1?', 'A1');
      await tab.ask('2?');
      shows(tab, 'Hi', 'A0', '1?', 'A1', '2?', 'A3');
      await tab.show('A2');
      await tab.ask('3?');
      shows(tab, 'Hi', 'A0', '1?', 'A2', '3?', 'A4');
      return 'as shown';
    },
  },
  editMiddle: {
    name: 'edit in the middle',
    about: 'A question with later turns is replaced, twice. The later turns stay, on a branch.',
    play: async ({ open }) => {
      const tab = await twoAnswers(open);
      await tab.ask('2?');
      await tab.edit('1?', '1b?');
      shows(tab, 'Hi', 'A0', '1b?', 'A3');
      await tab.edit('1b?', '1c?');
      shows(tab, 'Hi', 'A0', '1c?', 'A4');
      await tab.show('A2');
      shows(tab, 'Hi', 'A0', '1?', 'A1', '2?', 'A2');
      await tab.ask('3?');
      shows(tab, 'Hi', 'A0', '1?', 'A1', '2?', 'A2', '3?', 'A5');
      return 'three branches';
    },
  },
  editFirst: {
    name: 'edit of the first question',
    about: 'The first question is replaced. The model reads nothing else.',
    play: async ({ open }) => {
      const tab = await twoAnswers(open);
      await tab.edit('Hi', 'Hey');
      shows(tab, 'Hey', 'A2');
      await tab.ask('2?');
      shows(tab, 'Hey', 'A2', '2?', 'A3');
      return 'two branches';
    },
  },
  sameEdit: {
    name: 'edit without a change',
    about: 'A question is replaced by the same text. It is asked again.',
    play: async ({ open }) => {
      const tab = await twoAnswers(open);
      await tab.edit('1?', '1?');
      shows(tab, 'Hi', 'A0', '1?', 'A2');
      return 'two branches';
    },
  },
  regenerateTwice: {
    name: 'regenerate twice',
    about: 'The last answer is generated again, twice. All three stay.',
    play: async ({ world, client, open }) => {
      const tab = await twoAnswers(open);
      await tab.regenerate();
      await tab.regenerate();
      shows(tab, 'Hi', 'A0', '1?', 'A3');
      if (client.keepsBranches === true) return 'three branches';
      const views = await viewsOf(world);
      equal(views.length, 3);
      for (const { messages, branches: shown } of views) {
        const { id = '' } = messages.findLast(({ role }) => role === 'user') ?? {};
        equal(shown[id]?.length, 3);
        ok(shown[id].includes(id));
      }
      return 'three branches';
    },
  },
  regenerateFirst: {
    name: 'regenerate the first answer',
    about: 'The only answer is generated again. Both begin the conversation.',
    play: async ({ open }) => {
      const tab = await open();
      await tab.ask('Hi');
      await tab.regenerate();
      shows(tab, 'Hi', 'A1');
      await tab.ask('1?');
      shows(tab, 'Hi', 'A1', '1?', 'A2');
      return 'two branches';
    },
  },
  reloadedTab: {
    name: 'edit after a reload',
    about:
      'A new tab regenerates and edits by the ids that the server shows; the first tab continues.',
    play: async ({ open }) => {
      const tab = await twoAnswers(open);
      const next = await open({ like: tab });
      await next.regenerate();
      shows(next, 'Hi', 'A0', '1?', 'A2');
      await next.edit('1?', '1b?');
      shows(next, 'Hi', 'A0', '1b?', 'A3');
      await tab.ask('2?');
      shows(tab, 'Hi', 'A0', '1?', 'A1', '2?', 'A4');
      await tab.edit('1?', '1c?');
      shows(tab, 'Hi', 'A0', '1c?', 'A5');
      return 'four branches';
    },
  },
  reloadBranches: {
    name: 'reload shows branches',
    about: 'A new tab shows the last answer, and can show and continue the other one.',
    play: async ({ world, open }) => {
      const tab = await twoAnswers(open);
      await tab.regenerate();
      const next = await open({ like: tab });
      shows(next, 'Hi', 'A0', '1?', 'A2');
      const { messages, head, branches: shown } = await viewOf(world);
      equal(head, messages.at(-1)?.id);
      const counts = Object.values(shown).map((ids) => ids.length);
      same(counts, [2]);
      await next.show('A1');
      await next.ask('2?');
      shows(next, 'Hi', 'A0', '1?', 'A1', '2?', 'A3');
      return '2 of 2';
    },
  },
};

import { same } from '../../column.js';
import { isWell } from '../tab.js';
import { linesIn, viewsOf } from '../views.js';
import { words } from '../world.js';
import { type ConversationRows, shows, textsOf, twoAnswers } from './scene.js';

/** Tabs that do not know of each other. */
export const tabRows: ConversationRows = {
  staleRegenerate: {
    name: 'stale tab regenerates',
    about: 'A tab that has not seen the last turn regenerates. The turn stays, on a branch.',
    play: async ({ open }) => {
      const first = await twoAnswers(open);
      const stale = await open({ like: first });
      await first.ask('2?');
      await stale.regenerate();
      shows(stale, 'Hi', 'A0', '1?', 'A3');
      await first.ask('3?');
      shows(first, 'Hi', 'A0', '1?', 'A1', '2?', 'A2', '3?', 'A4');
      await stale.ask('4?');
      shows(stale, 'Hi', 'A0', '1?', 'A3', '4?', 'A5');
      return 'two branches';
    },
  },
  staleSubmit: {
    name: 'stale tab asks',
    about: 'A tab that has not seen the last turn asks. The model reads what that tab shows.',
    play: async ({ open }) => {
      const first = await open();
      await first.ask('Hi');
      const stale = await open({ like: first });
      await first.ask('1?');
      await stale.ask('2?');
      shows(stale, 'Hi', 'A0', '2?', 'A2');
      await first.ask('3?');
      shows(first, 'Hi', 'A0', '1?', 'A1', '3?', 'A3');
      await stale.ask('4?');
      shows(stale, 'Hi', 'A0', '2?', 'A2', '4?', 'A4');
      return 'two branches';
    },
  },
  staleEdit: {
    name: 'stale tab edits',
    about: 'A tab that has not seen the last turn replaces the first question. All turns stay.',
    play: async ({ open }) => {
      const first = await twoAnswers(open);
      const stale = await open({ like: first });
      await first.ask('2?');
      await stale.edit('Hi', 'Hey');
      shows(stale, 'Hey', 'A3');
      await first.ask('3?');
      shows(first, 'Hi', 'A0', '1?', 'A1', '2?', 'A2', '3?', 'A4');
      return 'two branches';
    },
  },
  twoTabs: {
    name: 'two tabs at the same time',
    about: 'Two tabs show two branches, and both get answers at the same time.',
    play: async ({ world, open }) => {
      const first = await open();
      await first.ask('Hi');
      const second = await open({ like: first });
      await first.ask('1?');
      await second.ask('2?');
      const asking = [first.ask(`${words.slowly} 3?`), second.ask(`${words.slowly} 4?`)];
      await world.writing(2);
      world.release();
      await Promise.all(asking);
      const numbers = [first, second].map((tab) => textsOf(tab).at(-1)).toSorted();
      same(numbers, ['A3', 'A4']);
      [first, second].forEach((tab) => isWell(tab));
      return 'both';
    },
  },
  runningElsewhere: {
    name: 'an answer on another branch',
    about:
      'An answer is written on one branch. A new tab shows the other one without it, and asks.',
    play: async ({ world, client, open }) => {
      const first = await open();
      await first.ask('Hi');
      const second = await open({ like: first });
      await first.ask('1?');
      await second.ask('2?');
      const asking = second.ask(`${words.slowly} 3?`);
      await world.writing(1);
      const views = client.keepsBranches === true ? [] : await viewsOf(world);
      for (const { messages } of views) {
        const texts = linesIn(messages).map(({ text }) => text);
        same(texts.includes('1?') && texts.includes(`${words.slowly} 3?`), false, texts.join());
      }
      await first.ask('4?');
      shows(first, 'Hi', 'A0', '1?', 'A1', '4?', 'A4');
      world.release();
      await asking;
      shows(second, 'Hi', 'A0', '2?', 'A2', `${words.slowly} 3?`, 'A3');
      return 'not shown';
    },
  },
  sameTurn: {
    name: 'two tabs after the same answer',
    about: 'Two tabs ask at the same time after the same answer. Both get answers, on branches.',
    play: async ({ open }) => {
      const first = await open();
      await first.ask('Hi');
      const second = await open({ like: first });
      await Promise.all([first.ask('1?'), second.ask('2?')]);
      [first, second].forEach((tab) => isWell(tab));
      same(
        [first, second].map((tab) => textsOf(tab).slice(0, -1)),
        [
          ['Hi', 'A0', '1?'],
          ['Hi', 'A0', '2?'],
        ],
      );
      return 'two branches';
    },
  },
};

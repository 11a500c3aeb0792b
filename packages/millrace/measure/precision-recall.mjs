// Precision and recall of extracted facts on the dialogues of the tests, beside storing turns as they are:
// `node packages/millrace/measure/precision-recall.mjs [--half tuned|heldOut] [--texts]`, after `npm run build`.
// Without OPENAI_API_KEY, a model of rules extracts: its numbers are about the pipeline with this extractor, not about a
// language model. With it (and OPENAI_BASE_URL, MODEL), a real one does.
import console from 'node:console';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { lastValueFrom } from 'rxjs';
import { people } from '../dist/layers/long-term-memory/extraction/dialogues.test-support.js';
import { measured$ } from '../dist/layers/long-term-memory/extraction/measure.test-support.js';
import { ruleExtractor } from '../dist/layers/long-term-memory/extraction/rule-extractor.test-support.js';

const { values } = parseArgs({
  options: { half: { type: 'string' }, texts: { type: 'boolean', default: false } },
});

const extractor = async () => {
  if (process.env.OPENAI_API_KEY === undefined) return ruleExtractor();
  const { openai } = await import('@millrace/openai');
  return openai(process.env.MODEL ?? 'gpt-5-mini');
};

const percent = (part, whole) => (whole === 0 ? '–' : `${((100 * part) / whole).toFixed(1)}%`);
const scores = ({ right, entries, found, facts }) => {
  const [precision, recall] = [right / entries, found / facts];
  const f1 = (2 * precision * recall) / (precision + recall);
  return [percent(right, entries), percent(found, facts), percent(f1, 1)];
};

const model = await extractor();
console.log(
  `Extractor: ${model.name}. ${people.length} users, ${people.flatMap((it) => it.sessions).length} dialogues.\n`,
);

const heads = [
  '',
  'precision',
  'recall',
  'F1',
  'P@3',
  'R@3',
  'stale answers',
  'crossed',
  'tokens stored/user',
  'tokens of cost',
  'requests',
  'refused',
];
const line = (cells) => `| ${cells.join(' | ')} |`;
console.log(line(heads));
console.log(line(heads.map(() => '---')));
for (const half of values.half === undefined ? ['tuned', 'heldOut'] : [values.half]) {
  const group = people.filter((it) => it.half === half);
  for (const [name, by] of [['facts', model], ['turns']]) {
    const score = await lastValueFrom(measured$(group, by));
    const [precision, recall, f1] = scores(score.stored);
    const [precisionAt3, recallAt3] = scores(score.recalled);
    const { usage } = score;
    console.log(
      line([
        `${half}: ${name}`,
        precision,
        recall,
        f1,
        precisionAt3,
        recallAt3,
        `${score.stale} of ${score.questions}`,
        score.crossed,
        Math.round(score.tokensStored / group.length),
        usage.inputTokens + usage.outputTokens,
        score.requests,
        score.refused,
      ]),
    );
    if (values.texts && by !== undefined)
      console.log('wrong:', score.wrong, 'missed:', score.missed);
  }
}

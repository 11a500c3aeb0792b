import { useData } from 'vitepress';
import { computed, defineComponent, h, onBeforeUnmount, onMounted, ref } from 'vue';
import { resumedAt, runningAt, stepsAt } from './timeline.mjs';

/** The call is played in slow motion: one column in this many milliseconds. */
const columnMs = 90;

const cellWidth = 10;
const laneHeight = 68;
const left = 8;
const lineAt = 44;

const kinds = { h: 'thought', t: 'text', c: 'call', r: 'result' };

const legend = [
  ['thought', 'thought'],
  ['call', 'tool call'],
  ['result', 'result'],
  ['text', 'text'],
];

const marksOf = (cells, y) =>
  Array.from(cells).flatMap((cell, column) => {
    const x = left + column * cellWidth + cellWidth / 2;
    if (cell === '─') return [h('path', { class: 'work', d: `M${x - 5} ${y}h${cellWidth}` })];
    if (cell === '|') return [h('path', { class: 'end', d: `M${x} ${y - 15}v30` })];
    if (cell === '·') return [];
    const mark = h('circle', { class: kinds[cell], cx: x, cy: y, r: 5 });
    return cell === '!'
      ? [h('path', { class: 'cut', d: `M${x - 6} ${y - 6}l12 12m-12 0l12 -12` })]
      : [mark];
  });

const laneOf = ({ name, cells }, index, column) => {
  const y = index * laneHeight + lineAt;
  const end = left + cells.length * cellWidth;
  return h('g', { class: 'lane' }, [
    h('text', { class: 'name', x: left, y: y - 22 }, name),
    h('path', { class: 'line', d: `M${left} ${y}H${end}` }),
    ...marksOf(cells.slice(0, column), y),
  ]);
};

const summary =
  'A recorded call as a marble diagram: the model thinks and calls a calculator and a clock, both run at the same time, and the model answers.';

/** The call of README as a marble diagram that plays once, and that a reader can stop and resume. */
export const LiveCall = defineComponent(() => {
  const { frontmatter } = useData();
  const { lanes: recorded, ms } = frontmatter.value.call;
  const length = recorded[0].cells.length;
  const lanes = ref(recorded);
  const column = ref(length);
  const status = ref('done');
  const cutAt = ref(undefined);
  let timer;
  let isStill = true;

  const msAt = (columns) => Math.round((columns / length) * ms);
  const pause = () => clearInterval(timer);
  const run = () => {
    pause();
    const whole = lanes.value[0].cells.length;
    if (isStill) column.value = whole;
    status.value = column.value < whole ? 'running' : 'done';
    if (status.value === 'done') return;
    timer = setInterval(() => {
      column.value += 1;
      if (column.value < whole) return;
      pause();
      status.value = 'done';
    }, columnMs);
  };
  const play = () => {
    lanes.value = recorded;
    cutAt.value = undefined;
    column.value = 0;
    run();
  };
  const stop = () => {
    pause();
    // A diagram that does not move is stopped in the middle of its tools.
    if (isStill) column.value = Math.round(length * 0.4);
    cutAt.value = column.value;
    status.value = 'stopped';
  };
  const resume = () => {
    lanes.value = resumedAt(recorded, cutAt.value);
    run();
  };
  onMounted(() => {
    isStill = matchMedia('(prefers-reduced-motion: reduce)').matches;
    if (!isStill) play();
  });
  onBeforeUnmount(pause);

  const kept = computed(() => stepsAt(recorded, cutAt.value ?? 0));
  const steps = computed(() => `${kept.value} ${kept.value === 1 ? 'step' : 'steps'}`);
  const note = computed(() => {
    if (status.value === 'stopped') {
      const running = runningAt(recorded, cutAt.value).join(' and ');
      const stopped = running === '' ? '' : `, which stopped ${running} in the same tick`;
      return `Unsubscribed at ${msAt(cutAt.value)} ms${stopped}. The journal has ${steps.value}.`;
    }
    if (cutAt.value !== undefined)
      return `Resumed after ${steps.value} of the journal, none of which runs again.`;
    return `A call that took ${ms} ms, as README shows it. Unsubscribe at any time.`;
  });
  const code = computed(() =>
    status.value === 'stopped'
      ? "durable.resume$(agent, 'call-1')"
      : cutAt.value === undefined
        ? 'subscription.unsubscribe()'
        : "agent.stream$('What is 17.5% of 2,349?')",
  );
  const action = computed(() => {
    if (status.value === 'stopped') return { label: 'Resume', act: resume };
    if (status.value === 'running' && cutAt.value === undefined)
      return { label: 'Unsubscribe', act: stop };
    if (isStill && cutAt.value === undefined) return { label: 'Unsubscribe', act: stop };
    return { label: 'Play again', act: play };
  });

  return () => {
    const whole = lanes.value[0].cells.length;
    const width = left * 2 + whole * cellWidth;
    const height = lanes.value.length * laneHeight;
    const cursor = left + column.value * cellWidth;
    return h('figure', { class: 'live-call' }, [
      h('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': summary }, [
        ...lanes.value.map((lane, index) =>
          laneOf(
            status.value === 'stopped' ? cutLane(lane, cutAt.value) : lane,
            index,
            column.value,
          ),
        ),
        cutAt.value === undefined
          ? undefined
          : h('path', { class: 'seam', d: `M${left + cutAt.value * cellWidth} 0V${height}` }),
        status.value === 'running'
          ? h('path', { class: 'cursor', d: `M${cursor} 0V${height}` })
          : undefined,
      ]),
      h(
        'div',
        { class: 'legend', 'aria-hidden': 'true' },
        legend.map(([kind, label]) => h('span', [h('i', { class: kind }), label])),
      ),
      h('div', { class: 'controls' }, [
        h('button', { type: 'button', onClick: () => action.value.act() }, action.value.label),
        h('code', code.value),
      ]),
      h('figcaption', { 'aria-live': 'polite' }, note.value),
    ]);
  };
});

/** A lane that was left at a column: work that had not ended is cut there. */
const cutLane = (lane, column) =>
  runningAt([lane], column).length === 0
    ? lane
    : { ...lane, cells: `${lane.cells.slice(0, column - 1)}!` };

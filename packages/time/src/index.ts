// Time for agents: sleeps of days that survive restarts, and schedules.
export { sleep$, type SleepEnd, sleepLayer, type SleepLayerOptions } from './sleep.js';
export {
  type Resume,
  type Sleep,
  wake$,
  type WakeNotice,
  type WakeOptions,
  type Waking,
  type WokenSession,
  type WokenSessions,
} from './wake.js';
export {
  type Firing,
  type MakeCall,
  schedule,
  type ScheduledSession,
  type ScheduleNotice,
  type ScheduleOptions,
} from './schedule.js';
export type { TimerStore } from './options.js';
export type { StoreNotice } from './due.js';

/** The name of the step that an interrupt of a call is. It has no position: it comes from outside. */
export const interruptStep = 'interrupt';

/** The variables that every child process needs to find and load programs. */
export const CHILD_VARIABLES = {
  PATH: process.env.PATH ?? '',
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '',
  NODE_OPTIONS: process.env.NODE_OPTIONS ?? '',
}

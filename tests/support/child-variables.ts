/** The variables that even a child without this process's configuration is given: how to find and to load programs. */
export const CHILD_VARIABLES = {
  PATH: process.env.PATH ?? '',
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '',
}

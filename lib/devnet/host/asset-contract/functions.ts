import type { Contract, ContractFunction } from '../contract-function.ts'
import { administrativeFunctions } from './administrative-functions.ts'
import { readFunctions } from './read-functions.ts'
import { transferFunctions } from './transfer-functions.ts'

/** The Stellar asset contract (CAP-46-6, with CAP-67 and CAP-73). */
export const assetContract: Contract = new Map<string, ContractFunction>(
  Object.entries({ ...readFunctions, ...transferFunctions, ...administrativeFunctions }),
)

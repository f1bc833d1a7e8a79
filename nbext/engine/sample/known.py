"""Well-known contracts and their true metadata, written down by hand as facts.

Only these facts are true in the sample: who holds what, and every transfer, is made up. A null symbol
means that the public lists give none. On ethereum two tokens have the symbol RPL (before and after a
migration) and two collections LAND, so a symbol alone does not identify them.
"""

from __future__ import annotations

from dataclasses import dataclass

from nbext.core.chains import chain_of


@dataclass(frozen=True)
class Known:
    """One contract: chain name, EIP-55 address, standard, symbol, name, and decimals where it is an ERC20."""

    chain: str
    checksum_address: str
    standard: str
    symbol: str | None
    name: str
    decimals: int | None = None
    spam: bool = False

    @property
    def address(self) -> str:
        """The address in lower case."""
        return self.checksum_address.lower()

    @property
    def chain_id(self) -> int:
        """The chain's EIP-155 id."""
        return chain_of(self.chain).id

    @property
    def key(self) -> str:
        """The chain and what people call the contract there: ``ethereum:BAYC``."""
        return f"{self.chain}:{self.symbol or self.name}"


def _on(chain: str, standard: str, *facts: tuple[str, str | None, str, int | None]) -> list[Known]:
    return [Known(chain, address, standard, symbol, name, decimals) for address, symbol, name, decimals in facts]


TOKENS: tuple[Known, ...] = (
    *_on(
        "ethereum",
        "ERC20",
        ("0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", "USDC", "USDC", 6),
        ("0xdAC17F958D2ee523a2206206994597C13D831ec7", "USDT", "Tether USD", 6),
        ("0x6B175474E89094C44Da98b954EedeAC495271d0F", "DAI", "Dai Stablecoin", 18),
        ("0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2", "WETH", "Wrapped Ether", 18),
        ("0x2260FAC5E5542a773Aa44fBCfeDf7C193bc2C599", "WBTC", "Wrapped BTC", 8),
        ("0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984", "UNI", "Uniswap", 18),
        ("0x514910771AF9Ca656af840dff83E8264EcF986CA", "LINK", "ChainLink Token", 18),
        ("0x7Fc66500c84A76Ad7e9c93437bFc5Ac33E2DDaE9", "AAVE", "Aave", 18),
        ("0x9f8F72aA9304c8B593d555F12eF6589cC3A579A2", "MKR", "Maker", 18),
        ("0x5A98FcBEA516Cf06857215779Fd812CA3beF1B32", "LDO", "Lido DAO Token", 18),
        ("0x6982508145454Ce325dDbE47a25d4ec3d2311933", "PEPE", "Pepe", 18),
        ("0x95aD61b0a150d79219dCF64E1E6Cc01f0B64C4cE", "SHIB", "SHIBA INU", 18),
        ("0x4d224452801ACEd8B2F0aebE155379bb5D594381", "APE", "ApeCoin", 18),
        ("0xC18360217D8F7Ab5e7c516566761Ea12Ce7F9D72", "ENS", "Ethereum Name Service", 18),
        ("0xB50721BCf8d664c30412Cfbc6cf7a15145234ad1", "ARB", "Arbitrum", 18),
        ("0xD533a949740bb3306d119CC777fa900bA034cd52", "CRV", "Curve DAO Token", 18),
        ("0xc00e94Cb662C3520282E6f5717214004A7f26888", "COMP", "Compound", 18),
        ("0xc944E90C64B2c07662A292be6244BDf05Cda44a7", "GRT", "Graph Token", 18),
        ("0xC011a73ee8576Fb46F5E1c5751cA3B9Fe0af2a6F", "SNX", "Synthetix Network Token", 18),
        ("0x6B3595068778DD592e39A122f4f5a5cF09C90fE2", "SUSHI", "SushiToken", 18),
        ("0x0bc529c00C6401aEF6D220BE8C6Ea1667F6Ad93e", "YFI", "yearn.finance", 18),
        ("0x111111111117dC0aa78b770fA6A738034120C302", "1INCH", "1INCH Token", 18),
        ("0x5283D291DBCF85356A21bA090E6db59121208b44", "BLUR", "Blur", 18),
        ("0x0F5D2fB29fb7d3CFeE444a200298f468908cC942", "MANA", "Decentraland MANA", 18),
        ("0x3845badAde8e6dFF049820680d1F14bD3903a5d0", "SAND", "SAND", 18),
        ("0xae7ab96520DE3A18E5e111B5EaAb095312D7fE84", "stETH", "Liquid staked Ether 2.0", 18),
        ("0x455e53CBB86018Ac2B8092FdCd39d8444aFFC3F6", "POL", "Polygon Ecosystem Token", 18),
        ("0xD33526068D116cE69F19A9ee46F0bd304F21A51f", "RPL", "Rocket Pool Protocol", 18),
        ("0xB4EFd85c19999D84251304bDA99E90B92300Bd93", "RPL", "Rocket Pool", 18),
    ),
    *_on(
        "polygon",
        "ERC20",
        ("0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359", "USDC", "USDCoin", 6),
        ("0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174", "USDC.e", "USD Coin (PoS)", 6),
        ("0xc2132D05D31c914a87C6611C10748AEb04B58e8F", "USDT", "Tether USD", 6),
        ("0x8f3Cf7ad23Cd3CaDbD9735AFf958023239c6A063", "DAI", "Dai Stablecoin", 18),
        ("0x7ceB23fD6bC0adD59E62ac25578270cFf1b9f619", "WETH", "Wrapped Ether", 18),
        ("0x1BFD67037B42Cf73acF2047067bd4F2C47D9BfD6", "WBTC", "Wrapped BTC", 8),
        ("0x0d500B1d8E8eF31E21C99d1Db9A6444d3ADf1270", "WMATIC", "Wrapped Matic", 18),
        ("0xD6DF932A45C0f255f85145f286eA0b292B21C90B", "AAVE", "Aave", 18),
        ("0x53E0bca35eC356BD5ddDFebbD1Fc0fD03FaBad39", "LINK", "ChainLink Token", 18),
        ("0x385Eeac5cB85A38A9a07A70c73e0a3271CfB54A7", "GHST", "Aavegotchi", 18),
        ("0xB5C064F955D8e7F38fE0460C556a72987494eE17", "QUICK", "QuickSwap (NEW)", 18),
    ),
    *_on(
        "optimism",
        "ERC20",
        ("0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85", "USDC", "USDCoin", 6),
        ("0x7F5c764cBc14f9669B88837ca1490cCa17c31607", "USDC.e", "USD Coin (Bridged from Ethereum)", 6),
        ("0x94b008aA00579c1307B0EF2c499aD98a8ce58e58", "USDT", "Tether USD", 6),
        ("0xDA10009cBd5D07dd0CeCc66161FC93D7c9000da1", "DAI", "Dai", 18),
        ("0x4200000000000000000000000000000000000006", "WETH", "Wrapped Ether", 18),
        ("0x68f180fcCe6836688e9084f035309E29Bf0A2095", "WBTC", "Wrapped Bitcoin", 8),
        ("0x4200000000000000000000000000000000000042", "OP", "Optimism", 18),
        ("0x8700dAec35aF8Ff88c16BdF0418774CB3D7599B4", "SNX", "Synthetix", 18),
        ("0x9560e827aF36c94D2Ac33a39bCE1Fe78631088Db", "VELO", "Velodrome Finance", 18),
    ),
    *_on(
        "base",
        "ERC20",
        ("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "USDC", "USD Coin", 6),
        ("0xd9aAEc86B65D86f6A7B5B1b0c42FFA531710b6CA", "USDbC", "USD Base Coin", 6),
        ("0xfde4C96c8593536E31F229EA8f37b2ADa2699bb2", "USDT", "Tether", 6),
        ("0x50c5725949A6F0c72E6C4a641F24049A917DB0Cb", "DAI", "Dai Stablecoin", 18),
        ("0x4200000000000000000000000000000000000006", "WETH", "Wrapped Ether", 18),
        ("0xcbB7C0000aB88B473b1f5aFd9ef808440eed33Bf", "cbBTC", "Coinbase Wrapped BTC", 8),
        ("0x940181a94A35A4569E4529A3CDfB74e38FD98631", "AERO", "Aerodrome Finance", 18),
        ("0x4ed4E862860beD51a9570b96d89aF5E1B0Efefed", "DEGEN", "Degen", 18),
        ("0xAC1Bd2486aAf3B5C0fc3Fd868558b082a531B2B4", "TOSHI", "Toshi", 18),
    ),
    *_on(
        "arbitrum",
        "ERC20",
        ("0xaf88d065e77c8cC2239327C5EDb3A432268e5831", "USDC", "USDC", 6),
        ("0xFF970A61A04b1cA14834A43f5dE4533eBDDB5CC8", "USDC.e", "Bridged USDC", 6),
        ("0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9", "USDT0", "USDT0", 6),
        ("0xDA10009cBd5D07dd0CeCc66161FC93D7c9000da1", "DAI", "Dai", 18),
        ("0x82aF49447D8a07e3bd95BD0d56f35241523fBab1", "WETH", "Ether (Wrapped)", 18),
        ("0x2f2a2543B76A4166549F7aaB2e75Bef0aefC5B0f", "WBTC", "Arbitrum Bridged WBTC (Arbitrum One)", 8),
        ("0x912CE59144191C1204E64559FE8253a0e49E6548", "ARB", "Arbitrum", 18),
        ("0xfc5A1A6EB076a2C7aD06eD22C90d7E710E35ad0a", "GMX", "GMX", 18),
        ("0x539bdE0d7Dbd336b79148AA742883198BBF60342", "MAGIC", "MAGIC", 18),
        ("0xFa7F8980b0f1E64A2062791cc3b0871572f1F7f0", "UNI", "Uniswap", 18),
    ),
)

COLLECTIONS: tuple[Known, ...] = (
    *_on(
        "ethereum",
        "ERC721",
        ("0xBC4CA0EdA7647A8aB7C2061c2E118A18a936f13D", "BAYC", "BoredApeYachtClub", None),
        ("0x60E4d786628Fea6478F785A6d7e704777c86a7c6", "MAYC", "MutantApeYachtClub", None),
        ("0xb7F7F6C52F2e2fdb1963Eab30438024864c313F6", "WPUNKS", "Wrapped Cryptopunks", None),
        ("0xED5AF388653567Af2F388E6224dC7C4b3241C544", "AZUKI", "Azuki", None),
        ("0x306b1ea3ecdf94aB739F1910bbda052Ed4A9f949", "BEANZ", "Beanz", None),
        ("0x8a90CAb2b38dba80c64b7734e58Ee1dB38B8992e", "DOODLE", "Doodles", None),
        ("0xBd3531dA5CF5857e7CfAA92426877b022e612cf8", "PPG", "PudgyPenguins", None),
        ("0x23581767a106ae21c074b2276D25e5C3e136a68b", "MOONBIRD", "Moonbirds", None),
        ("0x49cF6f5d44E70224e2E23fDcdd2C053F30aDA28B", "CloneX", "CloneX", None),
        ("0x57f1887a8BF19b14fC0dF6Fd9B2acc9Af147eA85", "ENS", "ENS", None),
        ("0x7Bd29408f11D2bFC23c34f18275bBf23bB716Bc7", "MEEBIT", "Meebits", None),
        ("0x5Af0D9827E0c53E4799BB226655A1de152A425a5", "MIL", "Milady", None),
        ("0x1A92f7381B9F03921564a437210bB9396471050C", "CC", "Cool Cats NFT", None),
        ("0x9C8fF314C9Bc7F6e59A9d9225Fb22946427eDC03", "NOUN", "Nouns", None),
        ("0x34d85c9CDeB23FA97cb08333b511ac86E1C4E258", "OTHR", "Otherdeed", None),
        ("0x8821BeE2ba0dF28761AffF119D66390D594CD280", "DEGODS", "DeGods", None),
        ("0xF87E31492Faf9A91B02Ee0dEAAd50d51d56D5d4d", "LAND", "Decentraland", None),
        ("0x50f5474724e0Ee42D9a4e711ccFB275809Fd6d4a", "LAND", "Sandbox's LANDs", None),
        ("0xa7d8d9ef8D8Ce8992Df33D8b8CF4Aebabd5bD270", "BLOCKS", "Art Blocks", None),
    ),
    *_on(
        "ethereum",
        "ERC1155",
        ("0x495f947276749Ce646f68AC8c248420045cb7b5e", "OPENSTORE", "OpenSea Shared Storefront", None),
        ("0xa342f5D851E866E18ff98F351f2c6637f4478dB5", "ASSET", "The Sandbox ASSETS", None),
        ("0x76BE3b62873462d2142405439777e971754E8E77", None, "Parallel", None),
    ),
    *_on(
        "polygon",
        "ERC1155",
        ("0x631998e91476DA5B870D741192fc5Cbc55F5a52E", "SKYWVR", "Skyweaver", None),
    ),
    *_on(
        "polygon",
        "ERC721",
        ("0x10D10Bd7fcf71efd8F9238a580292AC3F058ea95", "LAND", "Sandbox's LANDs", None),
        ("0x624E4fa6980Afcf8EA27BFe08e2fB5979b64DF1C", "BK", "Bumpkins", None),
    ),
    *_on(
        "polygon",
        "ERC1155",
        ("0x22d5f9B75c524Fec1D6619787e582644CD4D7422", None, "Sunflower Land Collectibles", None),
    ),
    *_on(
        "base",
        "ERC721",
        ("0x2691805280d08d532e5F2c25dA94A73b19eBeE4b", "OKGO", "OKGO on Base", None),
    ),
    *_on(
        "arbitrum",
        "ERC721",
        ("0x1C7b75FFEF2fFAB57D4a9727003bcD602f978bCe", "FFP", "Footium Player", None),
    ),
    *_on(
        "arbitrum",
        "ERC1155",
        ("0xEBba467eCB6b21239178033189CeAE27CA12EaDf", None, "Treasures", None),
    ),
)
KNOWN = (*TOKENS, *COLLECTIONS)
